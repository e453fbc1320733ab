import { typedDecimal } from "../base/money.ts";
import { ApiError, badRequest } from "../base/errors.ts";
import { isId } from "../base/ids.ts";

/**
 * Returns a form's field without surrounding spaces; null where that is empty. Browsers send each
 * line end as CR LF, however it was written (https://html.spec.whatwg.org, form submission).
 */
export function submittedText(form: URLSearchParams, name: string): string | null {
  return form.get(name)?.replaceAll("\r\n", "\n").trim() || null;
}

/**
 * Returns a whole number, or null for an empty field. Throws 400 that names the field by its label.
 */
export function integerText(form: URLSearchParams, name: string, label: string): number | null {
  const text = submittedText(form, name);
  if (text === null) return null;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw badRequest(name, `‘${label}’ must be a whole number, not '${text.slice(0, 40)}'.`);
}

/** Returns a decimal as people write it, also with a comma; it is validated where it is used. */
export function decimalText(form: URLSearchParams, name: string): string | null {
  const text = submittedText(form, name);
  return text === null ? null : typedDecimal(text);
}

/** Returns the id of a form, by which a repeated submission is recognized. Throws 400. */
export function formIdOf(form: URLSearchParams): string {
  const id = form.get("formId") ?? "";
  if (isId("form", id)) return id;
  throw badRequest("formId", "This page has expired. Open it again.");
}

/** The labels of a form's fields, by their paths in the submitted object. */
export type FieldLabels = Readonly<Record<string, string>>;

/**
 * Runs what a form asks for; `again` shows the form again with the error, which names fields by
 * their labels.
 */
export async function orShowFormAgain(
  work: () => Promise<Response>,
  again: (problem: string, error: ApiError) => Promise<Response> | Response,
  labels: FieldLabels = {},
): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) {
      return await again(inWordsOf(labels, error), error);
    }
    throw error;
  }
}

/** Returns the same error, with the field's label in place of its name in the API. */
function inWordsOf(labels: FieldLabels, { message, param }: ApiError): string {
  const place = param ?? "";
  const label = labels[place] ?? labels[place.replace(/\.\d+$/, "")];
  const said = [`Invalid '${place}':`, `'${place}'`].find((start) => message.startsWith(start));
  return label === undefined || !said ? message : `‘${label}’${message.slice(said.length)}`;
}
