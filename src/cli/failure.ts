/** A failure whose message is printed without a stack trace. Any other error is a bug and shows its stack. */
export class Failure extends Error {
  override readonly name = "Failure";
}
