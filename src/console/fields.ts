import { typedDecimal } from "../base/money.ts";
import { ApiError, badRequest } from "../base/errors.ts";
import { isId } from "../base/ids.ts";

/**
 * What a form holds under a name, without blanks around it; null where that is nothing. Browsers
 * send each end of a line as CR LF, however it was written (https://html.spec.whatwg.org, form
 * submission).
 */
export function submittedText(form: URLSearchParams, name: string): string | null {
  return form.get(name)?.replaceAll("\r\n", "\n").trim() || null;
}

/**
 * A whole number, or null where none is filled in. Throws 400 that names the field by its label.
 */
export function integerText(form: URLSearchParams, name: string, label: string): number | null {
  const text = submittedText(form, name);
  if (text === null) return null;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw badRequest(name, `‘${label}’ must be a whole number, and is '${text.slice(0, 40)}'.`);
}

/** A decimal as people write it, with a comma too; what it is worth is judged where it is used. */
export function decimalText(form: URLSearchParams, name: string): string | null {
  const text = submittedText(form, name);
  return text === null ? null : typedDecimal(text);
}

/** The id of a form of ours, by which one that is sent twice is known. Throws 400. */
export function formIdOf(form: URLSearchParams): string {
  const id = form.get("formId") ?? "";
  if (isId("form", id)) return id;
  throw badRequest("formId", "The page is too old. Open it again.");
}

/** What a form calls its fields, by their places in what it gives. */
export type FieldLabels = Readonly<Record<string, string>>;

/**
 * Does what a form asks for; what is wrong with its fields is told by `again`, on the form, by
 * their labels.
 */
export async function orShowFormAgain(
  work: () => Promise<Response>,
  again: (fault: string, error: ApiError) => Promise<Response> | Response,
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

/** The same fault, with the field's label in place of its name in the API. */
function inWordsOf(labels: FieldLabels, { message, param }: ApiError): string {
  const place = param ?? "";
  const label = labels[place] ?? labels[place.replace(/\.\d+$/, "")];
  const said = [`Invalid '${place}':`, `'${place}'`].find((start) => message.startsWith(start));
  return label === undefined || !said ? message : `‘${label}’${message.slice(said.length)}`;
}
