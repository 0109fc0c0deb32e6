/** A failure that is shown in one line: what happened, and what to do. Anything else is a bug and shows its stack. */
export class Failure extends Error {
  override readonly name = "Failure";
}
