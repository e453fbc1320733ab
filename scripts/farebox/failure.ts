/** The exit codes of the process. */
export const exitCodes = { ok: 0, refused: 1, usage: 2, unreachable: 3 } as const;

/** A command that failed: the error for people, and the exit code. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.name = "Failure";
    this.exitCode = exitCode;
  }
}

/** The service understood the request and refused it. */
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

/** No response, or not in time: what was sent may or may not have been processed. */
export class Unreachable extends Failure {
  /** False where there was no connection, so that nothing can have been processed. */
  readonly wasSent: boolean;

  constructor(message: string, wasSent = true) {
    super(exitCodes.unreachable, message);
    this.name = "Unreachable";
    this.wasSent = wasSent;
  }
}

/** Creates the failure of an invalid command; the message tells what to type instead. */
export function usage(message: string): Failure {
  return new Failure(exitCodes.usage, message);
}

/** Creates the failure of a valid command that could not be carried out. */
export function refused(message: string): Failure {
  return new Failure(exitCodes.refused, message);
}
