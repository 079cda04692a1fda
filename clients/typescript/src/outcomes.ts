/** How a handler says that it did not complete. Returning is completing; any other error is a transient failure. */

export interface FailOptions {
  code?: string;
  details?: unknown;
}

/** Throw one of `Fail.transient`, `Fail.permanent`, `Fail.dead`. */
export class Fail extends Error {
  override readonly name = "Fail";

  constructor(
    readonly failure: "transient" | "permanent" | "dead",
    message: string,
    readonly options: FailOptions & { retryIn?: number } = {},
  ) {
    super(message);
  }

  /** Tried again while attempts are left, after `retryIn` seconds or the job's own backoff. */
  static transient(message: string, options: FailOptions & { retryIn?: number } = {}): Fail {
    return new Fail("transient", message, options);
  }

  /** Trying again would not help: the job is `failed`. */
  static permanent(message: string, options: FailOptions = {}): Fail {
    return new Fail("permanent", message, options);
  }

  /** The job needs a person: it is `dead`. */
  static dead(message: string, options: FailOptions = {}): Fail {
    return new Fail("dead", message, options);
  }
}

/** Later, and no attempt is charged. */
export class Snooze extends Error {
  override readonly name = "Snooze";

  constructor(readonly seconds: number) {
    super(`snoozed for ${seconds} s`);
  }
}

/** The handler stopped because `ctx.canceled` was aborted. */
export class Canceled extends Error {
  override readonly name = "Canceled";
}
