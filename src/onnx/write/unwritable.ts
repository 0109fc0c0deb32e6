/** An operation that can't be written. Without a message, it follows from another one. */
export class Unwritable extends Error {}
