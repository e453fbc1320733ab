import { overloaded } from "./errors.ts";
import { formBodyBytesMax } from "./limits.ts";

/** Reserves memory for a request's body. */
export interface BodyShare {
  /**
   * Opens a request's share. The returned function reserves more bytes. Both throw 503 `overloaded`
   * when the budget is used up; the function also once the request has ended. `stop` is then
   * called, since bytes that are still read would no longer be counted.
   */
  open(request: Request, stop: () => void): (bytes: number) => void;
}

/** The share of one request's body. */
interface Share {
  bytes: number;
  /** The key or the address that has sent it. */
  owner: string | null;
  ended: boolean;
  /** Stops reading. */
  stop: () => void;
}

/** Bounds the memory that large request bodies hold together. */
export class BodyBudget implements BodyShare {
  #bytes = 0;
  readonly #shares = new Map<Request, Share>();
  /** Bytes by who has sent them. */
  readonly #owned = new Map<string, number>();
  readonly #bytesMax: number;
  /** The most of one owner: a key, or an address. */
  readonly #ownedMax: number;
  readonly #refused: () => void;

  /**
   * `each` is the most bytes of one owner, which by default are half, but any body that is allowed.
   * `refused` is called for each body that does not fit.
   */
  constructor(bytesMax: number, refused: () => void, each?: number) {
    this.#bytesMax = bytesMax;
    this.#ownedMax = each ?? Math.max(bytesMax / 2, formBodyBytesMax);
    this.#refused = refused;
  }

  open(request: Request, stop: () => void): (bytes: number) => void {
    return this.#open(request, stop, null);
  }

  /** The share of one API key, or of one address. */
  shareOf(owner: string): BodyShare {
    return { open: (request, stop) => this.#open(request, stop, owner) };
  }

  /**
   * Reserves bytes for what is loaded for a request besides its body. Throws 503 `overloaded` when
   * the budget is used up.
   */
  add(request: Request, keyId: string, bytes: number): void {
    const share = this.#shares.get(request);
    const take = share ? this.#taking(share) : this.#open(request, () => {}, keyId);
    take(bytes);
  }

  #open(request: Request, stop: () => void, owner: string | null): (bytes: number) => void {
    if (this.#bytes >= this.#bytesMax) this.#refuse();
    const share: Share = { bytes: 0, owner, ended: false, stop };
    this.#shares.set(request, share);
    return this.#taking(share);
  }

  #taking(share: Share): (bytes: number) => void {
    const { owner } = share;
    return (bytes) => {
      if (share.ended) throw overloaded();
      const owned = owner === null ? 0 : this.#owned.get(owner) ?? 0;
      if (this.#bytes + bytes > this.#bytesMax) this.#refuse();
      if (owner !== null && owned + bytes > this.#ownedMax) this.#refuse();
      this.#bytes += bytes;
      share.bytes += bytes;
      if (owner !== null) this.#owned.set(owner, owned + bytes);
    };
  }

  /** Releases the request's share, if any. */
  free(request: Request): void {
    // Small bodies, which are most, have no share.
    if (this.#shares.size > 0) this.keep(request)();
  }

  /**
   * Keeps the share after the handler returns, until the returned function is called.
   */
  keep(request: Request): () => void {
    const share = this.#shares.get(request);
    this.#shares.delete(request);
    return () => {
      if (!share || share.ended) return;
      share.ended = true;
      this.#bytes -= share.bytes;
      this.#giveBack(share);
      share.stop();
    };
  }

  #giveBack({ owner, bytes }: Share): void {
    if (owner === null) return;
    const left = (this.#owned.get(owner) ?? 0) - bytes;
    if (left > 0) this.#owned.set(owner, left);
    else this.#owned.delete(owner);
  }

  #refuse(): never {
    this.#refused();
    throw overloaded();
  }
}
