/** A name to be looked up. */
export interface LookupQuestion {
  id: number;
  host: string;
}

/** The addresses of a name, or why there are none. */
export type LookupAnswer = { id: number; addresses: string[] } | { id: number; message: string };
