/** Ways in which Metal's attention can be made to fail, and what is recorded for each. */
import type { Implementation } from "../../../src/backend/backend.ts";
import { type FaultKind, metalContext } from "../../../src/backend/metal/context.ts";
import { backwardMetal } from "../../../src/ops/attention/backward.metal.ts";
import { dropoutMaskMetal } from "../../../src/ops/attention/dropout_mask.metal.ts";
import { forwardMetal } from "../../../src/ops/attention/forward.metal.ts";

/** The operations of a call, in the order in which a step runs them. */
export const operations = ["attentionForward", "attentionDropoutMask", "attentionBackward"] as const;
export type AttentionOperation = (typeof operations)[number];

/** The reason that `codepaths()` states for an operation that ran elsewhere. */
export const injectedFaults: Readonly<Record<FaultKind, RegExp>> = {
  library: /^metal: .*Injected failure of the compiler/,
  pipeline: /^metal: .*Injected failure of the pipeline/,
  allocate: /^metal: out of memory$/,
  "command-buffer": /^metal: the command buffer failed$/,
};
export const faultKinds = Object.keys(injectedFaults) as FaultKind[];

/** Makes an operation fail once, after `skip` successes. An allocation is tried twice before it counts as failed. */
export const injectOnce = (kind: FaultKind, skip: number): void =>
  metalContext().injectFault(kind, { skip, count: kind === "allocate" ? 2 : 1 });

export function clearFaults(): void {
  for (const kind of faultKinds) metalContext().injectFault(kind, { count: 0 });
}

/** Pipelines created in `body` support only this many threads. */
export function withThreadLimit<Result>(threads: number, body: () => Result): Result {
  const context = metalContext();
  const before = context.report().settings?.["max_threads"] ?? "1024";
  context.configure("max_threads", threads);
  try {
    return body();
  } finally {
    context.configure("max_threads", before);
  }
}

type Refusing = Pick<Implementation<never>, "unsupported">;
const implementations: Readonly<Record<AttentionOperation, Refusing>> = {
  attentionForward: forwardMetal,
  attentionDropoutMask: dropoutMaskMetal,
  attentionBackward: backwardMetal,
};

/** Runs `body` while Metal's kernels lack an option of an operation's calls. */
export function withoutSupport<Result>(operation: AttentionOperation, why: string, body: () => Result): Result {
  const implementation = implementations[operation];
  const known = implementation.unsupported;
  implementation.unsupported = () => why;
  try {
    return body();
  } finally {
    if (known) implementation.unsupported = known;
    else delete implementation.unsupported;
  }
}
