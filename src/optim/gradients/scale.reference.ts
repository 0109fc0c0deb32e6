import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";

export const scaleReference: Implementation<undefined> = {
  run({ inputs: [factor, ...gradients], outputs }) {
    const by = toNumbers(factor)[0];
    for (const [index, gradient] of gradients.entries())
      store(
        outputs[index],
        toNumbers(gradient).map((g) => g * by),
      );
  },
};
