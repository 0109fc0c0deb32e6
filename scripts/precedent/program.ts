/** A parsed program: its tokens, its names, and the receiver of its constructs. */
import type { Scopes } from "./scopes.ts";
import type { Token } from "./tokens.ts";

export type Report = (construct: string, at: Token) => void;

export interface Program {
  readonly tokens: readonly Token[];
  readonly scopes: Scopes;
  readonly report: Report;
  /** Positions of declared names, which are not uses. */
  readonly names: Set<number>;
}

export const textAt = ({ tokens }: Program, at: number): string => tokens[at]?.text ?? "";
