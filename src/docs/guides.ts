/** A guide: a page of its own below `/docs/guides/`. */
export interface Guide {
  /** The end of its address. */
  name: string;
  title: string;
}

/** The guides, in the order in which they are offered on every page of the documentation. */
export const guides: readonly Guide[] = [];
