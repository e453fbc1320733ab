import { latin1Of } from "../base/latin1.ts";
import { codeOf, viewOf } from "./image_size.ts";
import type { MediaWork } from "./media_work.ts";
import { aacRate } from "./aac_rate.ts";

// ISO 14496-12

const [ftyp, moov, moof, mvex, cmov, trak] = codes("ftyp", "moov", "moof", "mvex", "cmov", "trak");
const [mvhd, mdhd, stsd, stts, stsz, stz2, elst] = codes(
  ...["mvhd", "mdhd", "stsd", "stts", "stsz", "stz2", "elst"],
);
const [mdia, minf, stbl, edts] = codes("mdia", "minf", "stbl", "edts");
const [mp4a] = codes("mp4a");

function codes(...names: string[]): number[] {
  return names.map(codeOf);
}

const boxNames = /trak|mdia|edts|elst|mdhd|minf|stbl|stsd|stts|stsz|mvhd|moof|mvex|cmov|stz2/g;

/** The boxes that are read, by the box around them. A second one of them is not understood. */
const parentOf = new Map<number | undefined, number | undefined>([
  ...[[mvhd, moov], [trak, moov], [mdia, trak], [edts, trak], [elst, edts]] as const,
  ...[[mdhd, mdia], [minf, mdia], [stbl, minf]] as const,
  ...[[stsd, stbl], [stts, stbl], [stsz, stbl]] as const,
]);
const parents = new Set([moov, trak, mdia, minf, stbl, edts]);
/** Fragments, compressed headers and tables of another form. */
const notRead = new Set([moof, mvex, cmov, stz2]);
/** Tracks that are no sound. */
const silent = new Set(
  codes("avc1", "avc3", "hvc1", "hev1", "vp09", "av01", "tx3g", "text", "tmcd", "mp4s", "mp4v"),
);

/** The contents of the tables of one track. */
interface Track {
  /** Boxes that it has. */
  boxes: Set<number>;
  codec: number | null;
  /** Units of its times in a second. */
  timescale: number;
  /** The sample rate of AAC, in hertz; null for another codec. */
  rate: number | null;
  samples: number;
  sampleBytes: number;
  /** The longest that its headers state. */
  seconds: number;
}

/** The contents of the headers of a whole file. */
interface Movie {
  tracks: Track[];
  /** The longest that its headers state. */
  seconds: number;
}

const samplesPerFrame = 1_024;
/** Nobody makes AAC with more bytes a second. */
const fastSoundBytesPerSecond = 40_000;

/**
 * The seconds of an MP4 file with AAC: of all frames that its tables list, or as its headers state,
 * whichever is longest. Null for another file or codec, a fragmented file, and one whose boxes are
 * not exactly what is usual.
 */
export function mp4SoundSeconds(bytes: Uint8Array, work: MediaWork): number | null {
  const movie = readMovie(bytes, work);
  if (!movie) return null;
  let frames = 0;
  let sounds = 0;
  for (const { codec, rate, samples, sampleBytes } of movie.tracks) {
    if (codec !== null && silent.has(codec)) continue;
    if (rate === null || samples === 0) return null;
    sounds++;
    frames += Math.max(samples * samplesPerFrame / rate, sampleBytes / fastSoundBytesPerSecond);
  }
  return sounds === 0 ? null : Math.max(frames, movie.seconds);
}

/** No film has more pictures a second. */
const fastestPictures = 240;
/** A film that states its length has no more bytes a second. */
const fastFilmBytesPerSecond = 5_000_000;

/**
 * A bound on the seconds of an MP4 film: the longest that any of its headers states; null where
 * none can be read.
 */
export function mp4FilmSeconds(bytes: Uint8Array, work: MediaWork): number | null {
  const movie = readMovie(bytes, work);
  if (!movie || movie.seconds === 0) return null;
  const ofTrack = ({ rate, samples }: Track) =>
    rate === null ? samples / fastestPictures : samples * samplesPerFrame / rate;
  const least = bytes.length / fastFilmBytesPerSecond;
  return Math.max(movie.seconds, least, ...movie.tracks.map(ofTrack));
}

/** Reads the headers of a file; null for one whose boxes are not exactly what is usual. */
function readMovie(bytes: Uint8Array, work: MediaWork): Movie | null {
  if (bytes.length < 8 || viewOf(bytes).getUint32(4) !== ftyp) return null;
  return new MovieReader(bytes, work).read();
}

const tracksMax = 16;

class MovieReader {
  readonly #view: DataView;
  readonly #work: MediaWork;
  readonly #movie: Pick<Movie, "tracks"> = { tracks: [] };
  #track: Track | null = null;
  #hasMovie = false;
  readonly #header = { timescale: 0, seconds: 0 };
  readonly #headerBoxes = new Set<number>();
  #edited = 0;
  /** Boxes of the types that are read. */
  #boxes = 0;

  constructor(bytes: Uint8Array, work: MediaWork) {
    this.#view = viewOf(bytes);
    this.#work = work;
  }

  read(): Movie | null {
    if (!this.#readBoxes(0, this.#view.byteLength, undefined) || !this.#hasMovie) return null;
    const { tracks } = this.#movie;
    const { timescale, seconds } = this.#header;
    const edited = timescale > 0 ? this.#edited / timescale : 0;
    return { tracks, seconds: Math.max(seconds, edited, ...tracks.map(({ seconds }) => seconds)) };
  }

  /** Reads boxes that fill these bytes exactly. False where they do not. */
  #readBoxes(start: number, stop: number, parent: number | undefined): boolean {
    const view = this.#view;
    let at = start;
    while (at + 8 <= stop) {
      if (this.#work.elements-- <= 0) return false;
      const [stated, type] = [view.getUint32(at), view.getUint32(at + 4)];
      const isLong = stated === 1;
      if (isLong && at + 16 > stop) return false;
      const from = at + (isLong ? 16 : 8);
      const length = isLong ? view.getUint32(at + 8) * 2 ** 32 + view.getUint32(at + 12) : stated;
      const end = stated === 0 && parent === undefined ? stop : at + length;
      if (end < from || end > stop || notRead.has(type)) return false;
      if (!this.#readBox(type, { from, end, parent })) return false;
      at = end;
    }
    return at === stop;
  }

  #readBox(
    type: number,
    { from, end, parent }: { from: number; end: number; parent: number | undefined },
  ): boolean {
    if (type === moov) {
      if (this.#hasMovie || parent !== undefined) return false;
      this.#hasMovie = true;
      return this.#readBoxes(from, end, moov) && this.#boxes === this.#boxesIn(from, end);
    }
    const usual = parentOf.get(type);
    if (usual === undefined) return true;
    if (usual !== parent) return false;
    this.#boxes++;
    if (type === trak) {
      this.#track = {
        ...{ boxes: new Set<number>(), codec: null, rate: null, timescale: 0 },
        ...{ samples: 0, sampleBytes: 0, seconds: 0 },
      };
      this.#movie.tracks.push(this.#track);
      return this.#movie.tracks.length <= tracksMax && this.#readBoxes(from, end, trak);
    }
    const boxes = type === mvhd ? this.#headerBoxes : this.#track?.boxes;
    if (!boxes || boxes.has(type)) return false;
    boxes.add(type);
    return parents.has(type) ? this.#readBoxes(from, end, type) : this.#readTable(type, from, end);
  }

  /** How many such boxes there seem to be: some decoders read them wherever they are. */
  #boxesIn(from: number, end: number): number {
    const { buffer, byteOffset } = this.#view;
    const text = latin1Of(new Uint8Array(buffer, byteOffset + from, end - from));
    let boxes = 0;
    for (const _ of text.matchAll(boxNames)) boxes++;
    return boxes;
  }

  #readTable(type: number, from: number, end: number): boolean {
    const track = this.#track;
    switch (type) {
      case mvhd:
        Object.assign(this.#header, this.#readHeader(from, end));
        return true;
      case elst:
        return this.#readEdits(from, end);
      case mdhd:
        if (track) Object.assign(track, this.#readHeader(from, end));
        return track !== null;
      case stsd:
        return track !== null && this.#readCodec(track, from, end);
      case stts:
        return track !== null && this.#readTimes(track, from, end);
      default:
        return track !== null && this.#readSizes(track, from, end);
    }
  }

  /** A movie's or a media's header: 8.2.2 and 8.4.2. */
  #readHeader(from: number, end: number): { timescale: number; seconds: number } {
    const view = this.#view;
    const isLong = end > from && view.getUint8(from) === 1;
    if (from + (isLong ? 32 : 20) > end) return { timescale: 0, seconds: 0 };
    const timescale = view.getUint32(from + (isLong ? 20 : 12));
    const duration = isLong
      ? view.getUint32(from + 24) * 2 ** 32 + view.getUint32(from + 28)
      : view.getUint32(from + 16);
    // All bits are set where the length is not known.
    const isUnknown = duration >= (isLong ? 2 ** 64 : 2 ** 32 - 1);
    return { timescale, seconds: timescale === 0 || isUnknown ? 0 : duration / timescale };
  }

  /** Sample description: 8.5.2. */
  #readCodec(track: Track, from: number, end: number): boolean {
    if (from + 16 > end || this.#view.getUint32(from + 4) !== 1) return false;
    track.codec = this.#view.getUint32(from + 12);
    if (track.codec !== mp4a) return true;
    const { buffer, byteOffset } = this.#view;
    track.rate = aacRate(new Uint8Array(buffer, byteOffset + from, end - from));
    return track.rate !== null;
  }

  /** How long samples are: 8.6.1.2. Headers may stand in any order, but the scale comes first. */
  #readTimes(track: Track, from: number, end: number): boolean {
    const entries = from + 8 <= end ? this.#view.getUint32(from + 4) : 0;
    if (from + 8 + entries * 8 > end || (this.#work.elements -= entries) < 0) return false;
    let sum = 0;
    for (let at = from + 8; at < from + 8 + entries * 8; at += 8) {
      sum += this.#view.getUint32(at) * this.#view.getUint32(at + 4);
    }
    if (track.timescale === 0) return entries === 0;
    track.seconds = Math.max(track.seconds, sum / track.timescale);
    return true;
  }

  /** The sizes of samples: 8.7.3.2. */
  #readSizes(track: Track, from: number, end: number): boolean {
    if (from + 12 > end) return false;
    const [size, count] = [this.#view.getUint32(from + 4), this.#view.getUint32(from + 8)];
    track.samples = count;
    track.sampleBytes = size * count;
    if (size > 0) return true;
    const stop = Math.min(end, from + 12 + count * 4);
    if ((this.#work.elements -= Math.ceil(count / 8)) < 0) return false;
    for (let at = from + 12; at + 4 <= stop; at += 4) {
      track.sampleBytes += this.#view.getUint32(at);
    }
    return true;
  }

  /**
   * Reads the edit list: the parts of a track that are played, maybe several times (ISO/IEC
   * 14496-12, 8.6.6).
   */
  #readEdits(from: number, end: number): boolean {
    if (from + 8 > end) return false;
    const isLong = this.#view.getUint8(from) === 1;
    const [entries, length] = [this.#view.getUint32(from + 4), isLong ? 20 : 12];
    if (from + 8 + entries * length > end || (this.#work.elements -= entries) < 0) return false;
    let sum = 0;
    for (let at = from + 8; at < from + 8 + entries * length; at += length) {
      sum += isLong
        ? this.#view.getUint32(at) * 2 ** 32 + this.#view.getUint32(at + 4)
        : this.#view.getUint32(at);
    }
    this.#edited = Math.max(this.#edited, sum);
    return true;
  }
}
