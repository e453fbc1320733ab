/** What the process ends with. */
export const exitCodes = { ok: 0, refused: 1, usage: 2, unreachable: 3 } as const;

/** A command that could not be done: what was wrong, for people, and what the process ends with. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.name = "Failure";
    this.exitCode = exitCode;
  }
}

/** The service understood and said no. */
export class Refusal extends Failure {
  readonly status: number;
  readonly code: string | null;

  constructor(status: number, detail: { message: string; code: string | null }) {
    super(exitCodes.refused, detail.message);
    this.name = "Refusal";
    this.status = status;
    this.code = detail.code;
  }
}

/** Nobody answers, or not in time: what was asked for may or may not have been done. */
export class Unreachable extends Failure {
  constructor(message: string) {
    super(exitCodes.unreachable, message);
    this.name = "Unreachable";
  }
}

/** The command was not understood; what to type instead is in the message. */
export function usage(message: string): Failure {
  return new Failure(exitCodes.usage, message);
}

/** The command was understood, and could not be done. */
export function refused(message: string): Failure {
  return new Failure(exitCodes.refused, message);
}
