import { expect, test } from "bun:test";
import { describeGaps } from "../../scripts/suite/gaps.ts";

test("gaps are grouped by backend and reason, each once", () => {
  const lines = [
    "sort int64 on metal: Metal has no float64",
    "exp float64 on metal: Metal has no float64",
    "exp float64 on metal: Metal has no float64",
    "qr on cpu: it needs: LAPACK",
  ].join("\n");
  expect(describeGaps(lines)).toBe(
    "\nWhat backends lack\n  cpu: it needs: LAPACK (1)\n    qr\n" +
      "  metal: Metal has no float64 (2)\n    exp float64, sort int64\n",
  );
});

test("without gaps nothing is printed", () => expect(describeGaps("")).toBe(""));
