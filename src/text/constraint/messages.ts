/** The messages between a program and its processes for constraints. */

/** A constraint as it is sent to the process that compiles it. */
export type Form =
  | { readonly kind: "json" }
  | { readonly kind: "regex"; readonly source: string }
  /** @see schemaText */
  | { readonly kind: "schema"; readonly schema: string }
  | { readonly kind: "calls"; readonly functions: readonly FunctionForm[]; readonly form: CallForm };

/** A function that the model may call, with the schema of its arguments as text. */
export interface FunctionForm {
  readonly name: string;
  readonly schema: string;
}

/** @internal The syntax of function calls in texts. */
export interface CallForm {
  /** `"tags"`: `<tool_call>{"name": …, "arguments": …}</tool_call>`; `"json"`: one `{"name": …, "parameters": …}`. */
  readonly written: "tags" | "json";
  /** Whether the text consists only of calls; otherwise it is free text that may contain calls in tags. */
  readonly isForced: boolean;
  /** Whether there may be several calls. */
  readonly isParallel: boolean;
}

/** A task. The program assigns the IDs. */
export type Task =
  /** The concatenated bytes of tokens and their ends; special tokens have no bytes. */
  | { readonly kind: "vocabulary"; readonly id: number; readonly bytes: Uint8Array; readonly ends: Uint32Array }
  | { readonly kind: "form"; readonly id: number; readonly vocabulary: number; readonly form: Form }
  /** Begins a text with existing tokens. The answer has a mask, in which an additional token ends the text. */
  | {
      readonly kind: "start";
      readonly id: number;
      readonly of: number;
      readonly tokens: readonly number[];
    }
  /** The answer has a mask. */
  | { readonly kind: "accept"; readonly id: number; readonly token: number }
  | { readonly kind: "forget"; readonly what: "vocabulary" | "form" | "text"; readonly id: number };

/** A task, and the seconds of CPU time after which the process ends itself. */
export interface Request {
  readonly task: Task;
  readonly seconds: number;
}

/** The answer to a task; answers arrive in the order of tasks. */
export interface Answer {
  readonly mask?: Int32Array;
  /** CPU time used. */
  readonly seconds: number;
  readonly error?: Refusal;
}

export interface Refusal {
  readonly code: string;
  readonly message: string;
  /** Whether the process ends because XGrammar crashed. */
  readonly isLast: boolean;
}
