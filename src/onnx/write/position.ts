/** The writer of rotary position embeddings. */
import { lastElement } from "../../core/collections.ts";
import type { RopeAttributes } from "../../ops/position/primitive.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Formulas } from "./formulas.ts";
import type { Recorder } from "./recorder.ts";
import type { Writer } from "./writer.ts";

/** Pair (a, b) becomes magnitude · (a cos φ − b sin φ, a sin φ + b cos φ), in float32. */
export const rope: Writer = (recorder, { inputs: [x, positions], attributes }) => {
  const { frequencies, magnitude, interleaved, offset } = attributes as RopeAttributes;
  const [pairs, size] = [frequencies.length, lastElement(x.shape)];
  const graph = new Formulas(recorder, "float32");
  const wide = x.dtype === "float32" ? recorder.name(x) : graph.cast(recorder.name(x), "float32");
  const part = (from: number, to: number, step = 1): string =>
    graph.of("Slice", wide, ...[from, to, x.rank - 1, step].map((each) => recorder.numbers([each], [1], "int64")));
  const [a, b] = interleaved
    ? [part(0, 2 * pairs, 2), part(1, 2 * pairs, 2)]
    : [part(0, pairs), part(pairs, 2 * pairs)];
  const angles = anglesOf(recorder, { x, positions, frequencies, offset });
  const [cosine, sine] = ["Cos", "Sin"].map((operator) => {
    const value = graph.of(operator, angles);
    return magnitude === 1 ? value : graph.of("Mul", value, magnitude);
  }) as [string, string];
  const first = graph.of("Sub", graph.of("Mul", a, cosine), graph.of("Mul", b, sine));
  const second = graph.of("Add", graph.of("Mul", a, sine), graph.of("Mul", b, cosine));
  const axis = interleaved ? x.rank : x.rank - 1;
  const apart = (name: string): string => (interleaved ? graph.of("Unsqueeze", name, { sizes: [axis] }) : name);
  const joined = graph.with({ axis }, "Concat", apart(first), apart(second));
  const turned = interleaved ? graph.reshape(joined, [...x.shape.slice(0, -1), 2 * pairs]) : joined;
  const rest = size > 2 * pairs ? [part(2 * pairs, size)] : [];
  const result = rest.length > 0 ? graph.with({ axis: x.rank - 1 }, "Concat", turned, ...rest) : turned;
  return x.dtype === "float32" ? result : graph.cast(result, x.dtype);
};

interface Rows {
  readonly x: Tensor;
  readonly positions: Tensor | undefined;
  readonly frequencies: readonly number[];
  readonly offset: number;
}

/** Angles [..., seq, pairs]. Whole turns are left out in float64, since large angles are inexact in float32. */
function anglesOf(recorder: Recorder, { x, positions, frequencies, offset }: Rows): string {
  const graph = new Formulas(recorder, "float64");
  const whole = new Formulas(recorder, "int64");
  const length = x.shape.at(-2)!;
  const counted = () => {
    const ones = recorder.node("Expand", [recorder.scalar(1, "int64"), { sizes: [length] }]);
    return whole.of("Sub", recorder.node("CumSum", [ones, recorder.numbers([0], [], "int64")]), 1);
  };
  const given = positions ? recorder.name(positions) : counted();
  const shape =
    positions && positions.rank > 1
      ? [positions.shape[0], ...new Array<number>(x.rank - 3).fill(1), length, 1]
      : [elementCount(positions?.shape ?? [length]), 1];
  const rows = graph.reshape(graph.cast(given, "float64"), shape);
  const turns = frequencies.map((frequency) => frequency / (2 * Math.PI));
  const each = recorder.numbers(turns, [turns.length], "float64");
  const cycles = graph.of("Mul", graph.of("Add", rows, offset), each);
  const part = graph.cast(graph.of("Sub", cycles, graph.of("Floor", cycles)), "float32");
  return new Formulas(recorder, "float32").of("Mul", part, 2 * Math.PI);
}
