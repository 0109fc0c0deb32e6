/** What a program and its process for forms tell each other. */

/** The form of a text, as it is sent to the process that makes an automaton of it. */
export type Form =
  | { readonly kind: "json" }
  | { readonly kind: "regex"; readonly source: string }
  /** @see schemaText */
  | { readonly kind: "schema"; readonly schema: string }
  | { readonly kind: "calls"; readonly functions: readonly FunctionForm[]; readonly form: CallForm };

/** A function that may be called, with the schema of its arguments as text. */
export interface FunctionForm {
  readonly name: string;
  readonly schema: string;
}

/** @internal How texts call functions. */
export interface CallForm {
  /** `"tags"`: `<tool_call>{"name": …, "arguments": …}</tool_call>`; `"json"`: `{"name": …, "parameters": …}`, one. */
  readonly written: "tags" | "json";
  /** Whether the text is calls alone; otherwise it says something, in which there may be calls in tags. */
  readonly isForced: boolean;
  /** Whether there may be several calls. */
  readonly isParallel: boolean;
}

/** What there is to do. Ids are the program's. */
export type Task =
  /** The tokens' bytes one after the other, and where each ends; those that are no text have none. */
  | { readonly kind: "vocabulary"; readonly id: number; readonly bytes: Uint8Array; readonly ends: Uint32Array }
  | { readonly kind: "form"; readonly id: number; readonly vocabulary: number; readonly form: Form }
  /** Begins a text with tokens that it has already. The answer has a mask; a token beyond all ends the text. */
  | {
      readonly kind: "start";
      readonly id: number;
      readonly of: number;
      readonly tokens: readonly number[];
    }
  /** The answer has a mask. */
  | { readonly kind: "accept"; readonly id: number; readonly token: number }
  | { readonly kind: "forget"; readonly what: "vocabulary" | "form" | "text"; readonly id: number };

/** A task, and the seconds of the processor at which the process ends itself. */
export interface Request {
  readonly task: Task;
  readonly seconds: number;
}

/** The answer to each task, in their order. */
export interface Answer {
  readonly mask?: Int32Array;
  /** What it took of the processor. */
  readonly seconds: number;
  readonly error?: Refusal;
}

export interface Refusal {
  readonly code: string;
  readonly message: string;
  /** Whether the process ends, since XGrammar broke off. */
  readonly isLast: boolean;
}
