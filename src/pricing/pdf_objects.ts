import { latin1Of } from "../base/latin1.ts";
import type { Steps } from "../base/steps.ts";
import type { MediaWork } from "./media_work.ts";

/** An object is not longer than this, in characters. */
const objectCharsMax = 256 * 1024;
/** The numbers and places of the objects in a stream take no more. */
const headCharsMax = 64 * 1024;
const objectsMax = 200_000;
/** More pages fill any context window. */
const pagesMax = 1_000_000;

/** What stands between the words of an object's begin. */
const blank = "[\\s\\0]";
/** What stands before the word by which an object begins: its number and its generation. */
const beforeObject = new RegExp(`(?:^|\\D)(\\d{1,10})${blank}+\\d{1,5}${blank}+$`);
const beforeChars = 48;
const [beginWord, endWord] = ["obj", "endobj"];

/** The last object of a text. */
interface LastObject {
  text: string;
  /** Null where it has no begin. */
  number: number | null;
}

/** One definition of an object, as far as the tree of pages depends on it. */
interface PdfNode {
  /** The objects of each of its lists of pages. */
  kids: number[];
  /** Objects that are such lists. */
  lists: number[];
  /** What it has where it is such a list itself. */
  items: number[] | null;
}

/**
 * The objects of a document, and the pages that they can have. Every reading counts: an object that
 * is defined several times, as by incremental updates, is its largest definition, and every node
 * may be the root.
 */
export class PdfObjects {
  readonly #work: MediaWork;
  readonly #nodes = new Map<number, PdfNode[]>();
  /** Definitions without a number. */
  readonly #nameless: PdfNode[] = [];
  #objects = 0;
  /** The most pages that some object states or is. */
  #stated = 0;
  #pages = 0;
  /** References of nameless lists: they may be nodes of a tree that is not known. */
  #namelessKids = 0;
  /** Objects that pages name as their content, or lists of them. */
  readonly #contents = new Set<number>();

  constructor(work: MediaWork) {
    this.#work = work;
  }

  /**
   * Reads objects outside of streams. Returns the last one, which may be a stream's dictionary.
   * Null where they are not understood.
   */
  *addPlain(plain: string): Steps<LastObject | null> {
    if ((this.#work.plainBytes -= plain.length) < 0) return null;
    let number: number | null = null;
    let [from, objects] = [0, 0];
    for (let at = plain.indexOf(beginWord); at >= 0; at = plain.indexOf(beginWord, at + 3)) {
      if (isWordChar(plain, at - 1) || isWordChar(plain, at + beginWord.length)) continue;
      const [, digits] = beforeObject.exec(plain.slice(Math.max(0, at - beforeChars), at)) ?? [];
      // An object that this reader does not find, but others may.
      if (digits === undefined) return null;
      if (!this.#addWithRest(plain.slice(from, at), number)) return null;
      number = Number(digits);
      from = at + beginWord.length;
      if (++objects % 64 === 0) yield;
    }
    const last = plain.slice(from);
    return this.#addWithRest(last, number, true) ? { text: last, number } : null;
  }

  /** Adds an object, and what follows its end: a table of all objects, a trailer. */
  #addWithRest(text: string, number: number | null, isLast = false): boolean {
    const end = number === null ? 0 : text.indexOf(endWord);
    if (end < 0) return this.#add(text, number, isLast);
    const rest = text.slice(end);
    const first = rest.indexOf("/");
    return (end === 0 || this.#add(text.slice(0, end), number)) &&
      (first < 0 || this.#add(rest.slice(first), null));
  }

  /** Reads the content of an object stream: ISO 32000-2, 7.5.7. */
  *addCompressed(content: Uint8Array, dictionary: string): Steps<boolean> {
    const text = latin1Of(content);
    const first = Number(/\/First\s+(\d{1,9})/.exec(dictionary)?.[1] ?? 0);
    if (first > headCharsMax) return false;
    const head = text.slice(0, first).trim().split(/[\s\0]+/).map(Number);
    const starts = head.filter((_, at) => at % 2 === 1);
    const isOrdered = starts.every((start, at) => at === 0 || start > (starts[at - 1] ?? 0));
    // Without places of the objects, all of it is one without a number.
    if (starts.length === 0 || !isOrdered || head.some(Number.isNaN)) {
      yield;
      return this.#add(text, null);
    }
    for (const [at, start] of starts.entries()) {
      const end = starts[at + 1] ?? Infinity;
      const number = head[2 * at] ?? 0;
      if (!this.#add(text.slice(first + start, first + end), number)) return false;
      if (at % 64 === 63) yield;
    }
    return true;
  }

  #add(text: string, number: number | null, isStream = false): boolean {
    if (text.length > objectCharsMax || ++this.#objects > objectsMax) return false;
    if (/\/Encrypt\b/.test(text) || hasDisguise(text)) return false;
    if (!isStream && /\/ObjStm\b/.test(text)) return false;
    this.#pages += text.match(/\/Type\s*\/Page(?![a-zA-Z])/g)?.length ?? 0;
    for (const [, count] of text.matchAll(/\/Count\s+\+?(\d{1,9})/g)) {
      this.#stated = Math.max(this.#stated, Number(count));
    }
    for (const [, list] of text.matchAll(/\/Contents[\s\0]*(\[[^[\]]*\]|[\d\s\0]+R\b)/g)) {
      for (const reference of referencesIn(list ?? "")) this.#contents.add(reference);
    }
    const node = readNode(text, number !== null);
    if (!node) return false;
    if (node.kids.length + node.lists.length === 0 && node.items === null) return true;
    if (number === null) {
      this.#nameless.push(node);
      this.#namelessKids += node.kids.length;
    } else {
      const known = this.#nodes.get(number);
      if (known) known.push(node);
      else this.#nodes.set(number, [node]);
    }
    return true;
  }

  /** Objects that pages name as their content, also in lists. */
  contents(): ReadonlySet<number> {
    const all = new Set(this.#contents);
    for (const content of this.#contents) {
      for (const { items } of this.#nodes.get(content) ?? []) {
        for (const item of items ?? []) all.add(item);
      }
    }
    return all;
  }

  /** The most pages that the objects can be; null where that has no end. */
  countPages(): number | null {
    let most = Math.max(this.#pages, this.#stated, this.#namelessKids);
    const known = new Map<number, number>();
    for (const number of this.#nodes.keys()) {
      const pages = this.#pagesOf(number, known, 0);
      if (pages === null) return null;
      most = Math.max(most, pages);
    }
    for (const node of this.#nameless) {
      const pages = this.#pagesIn(node, known, 0);
      if (pages === null) return null;
      most = Math.max(most, pages);
    }
    return Math.min(most, pagesMax);
  }

  /** The pages of an object: an object without a list is one page. Null where it is in itself. */
  #pagesOf(number: number, known: Map<number, number>, depth: number): number | null {
    const found = known.get(number);
    if (found !== undefined) return found < 0 ? null : found;
    known.set(number, -1);
    let most = 1;
    for (const node of this.#nodes.get(number) ?? []) {
      const pages = this.#pagesIn(node, known, depth);
      if (pages === null) return null;
      most = Math.max(most, pages);
    }
    known.set(number, most);
    return most;
  }

  #pagesIn(node: PdfNode, known: Map<number, number>, depth: number): number | null {
    if (depth > depthMax) return null;
    let pages = 0;
    for (const kids of this.#listsOf(node)) {
      // A list may be a part of many nodes.
      if ((this.#work.elements -= kids.length) < 0) return null;
      for (const kid of kids) {
        const more = this.#pagesOf(kid, known, depth + 1);
        if (more === null) return null;
        pages = Math.min(pagesMax, pages + more);
      }
    }
    return pages;
  }

  *#listsOf({ kids, lists }: PdfNode): Generator<readonly number[]> {
    yield kids;
    for (const list of lists) {
      for (const { items } of this.#nodes.get(list) ?? []) yield items ?? [];
    }
  }
}

const depthMax = 64;
const references = new RegExp(`(\\d{1,10})${blank}+\\d{1,5}${blank}+R\\b`, "g");

/** Reads the lists of pages in an object. Null for a list in another form than is usual. */
function readNode(text: string, mayBeList: boolean): PdfNode | null {
  const node: PdfNode = { kids: [], lists: [], items: null };
  if (mayBeList && /^[\s\0]*\[/.test(text)) node.items = referencesIn(text);
  for (let at = text.indexOf("/Kids"); at >= 0; at = text.indexOf("/Kids", at + 5)) {
    if (/^\w/.test(text.slice(at + 5, at + 6))) continue;
    const list = /^[\s\0]*(?:\[([^[\]]*)\]|(\d{1,10})[\s\0]+\d{1,5}[\s\0]+R\b)/
      .exec(text.slice(at + 5, at + 5 + objectCharsMax));
    if (!list) return null;
    const [, direct, indirect] = list;
    if (direct !== undefined) {
      // Nothing but references: a comment may hide some of them.
      if (/[^\d\s\0R]/.test(direct)) return null;
      for (const kid of referencesIn(direct)) node.kids.push(kid);
    }
    if (indirect !== undefined) node.lists.push(Number(indirect));
  }
  return node;
}

function referencesIn(text: string): number[] {
  return Array.from(text.matchAll(references), ([, number]) => Number(number));
}

function isWordChar(text: string, at: number): boolean {
  return /\w/.test(text.charAt(at));
}

const structuralNames = new Set([
  ...["Type", "Page", "Pages", "Kids", "Count", "ObjStm", "Filter", "First", "Encrypt", "N"],
  "FlateDecode",
]);
/** Names with escaped characters are rare. */
const escapedNamesMax = 5_000;

/** Whether a name that matters is written with escaped characters. */
function hasDisguise(text: string): boolean {
  if (!text.includes("#")) return false;
  let escaped = 0;
  for (const [, name = ""] of text.matchAll(/\/(\w{0,11}#[\da-fA-F]{2}[\w#]{0,32})/g)) {
    const plain = name.replace(
      /#([\da-fA-F]{2})/g,
      (_, hex) => String.fromCharCode(parseInt(hex, 16)),
    );
    if (structuralNames.has(plain) || ++escaped > escapedNamesMax) return true;
  }
  return false;
}
