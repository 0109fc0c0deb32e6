/** A program that is read: its tokens, the names in it, and whom to tell of its constructs. */
import type { Scopes } from "./scopes.ts";
import type { Token } from "./tokens.ts";

export type Report = (construct: string, at: Token) => void;

export interface Program {
  readonly tokens: readonly Token[];
  readonly scopes: Scopes;
  readonly report: Report;
  /** Where a declared name stands: it is no use of one. */
  readonly names: Set<number>;
}

export const textAt = ({ tokens }: Program, at: number): string => tokens[at]?.text ?? "";
