/** An operation that can't be written. The message is empty if another unwritable operation causes it. */
export class Unwritable extends Error {}
