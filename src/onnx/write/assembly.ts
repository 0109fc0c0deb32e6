/** Assembles values from the parts that a module writes into one tensor. */
import { lastElement } from "../../core/collections.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Layout, Recorded, Recorder } from "./recorder.ts";
import { type Axis, blocksOf, groupOf, type Part, placesOf, type Range, sliceOf, split } from "./views.ts";

interface WrittenPart {
  readonly layout: Layout;
  readonly name: string;
}

/** A storage whose parts are written separately, as by `cat`. */
export interface Assembly {
  readonly dtype: DType;
  /** The elements outside of all parts: a number, or the value before the parts were written. */
  readonly filling: number | Recorded;
  readonly parts: WrittenPart[];
}

/** A part of a grid. */
interface Box extends Range {
  readonly name: string;
}

/**
 * Returns the value of a storage of `count` elements. If each part is a box of one grid, parts are joined along one
 * axis after the other; otherwise elements are scattered to their positions.
 */
export function assembled(recorder: Recorder, assembly: Assembly, count: number): Recorded {
  const { dtype, parts } = assembly;
  const wanted = parts.flatMap(({ layout }) => layout.shape.map((size, at) => ({ size, stride: layout.strides[at] })));
  const axes = split([{ size: count, stride: 1 }], wanted);
  const boxes = axes && parts.map((part) => boxOf(recorder, axes, part));
  if (!axes || !boxes?.every((box) => box !== undefined)) return put(recorder, assembly, count);
  const shape = axes.map(({ size }) => size);
  const layout = { shape, strides: axes.map(({ stride }) => stride), offset: 0 };
  const name = new Joining(recorder, assembly, layout).joined(visible(boxes), {
    starts: shape.map(() => 0),
    ends: shape,
  });
  return { ...layout, name, dtype };
}

/** Returns a part as a box of the grid; undefined if it is not a box. */
function boxOf(recorder: Recorder, axes: readonly Axis[], { layout, name }: WrittenPart): Box | undefined {
  const { shape, strides, offset } = layout;
  const order = shape.map((_, axis) => axis).sort((a, b) => strides[b] - strides[a] || a - b);
  const groups = order.flatMap((axis) =>
    shape[axis] === 1 ? [] : [groupOf(axes, { size: shape[axis], stride: strides[axis] })],
  );
  if (groups.some((group) => group === undefined)) return undefined;
  const used = (groups as Part[][]).flat();
  if (new Set(used.map(({ axis }) => axis)).size !== used.length) return undefined;
  const range = sliceOf(axes, used, offset);
  if (!range) return undefined;
  const isInOrder = order.every((axis, at) => axis === at);
  const turned = isInOrder ? name : recorder.node("Transpose", [name], { perm: order });
  const sizes = range.ends.map((end, axis) => end - range.starts[axis]);
  const isShaped = `${order.map((axis) => shape[axis])}` === `${sizes}`;
  return { ...range, name: isShaped ? turned : recorder.node("Reshape", [turned, { sizes }]) };
}

/** Removes boxes that a later box covers. */
const visible = (boxes: readonly Box[]): readonly Box[] =>
  boxes.filter(
    ({ starts, ends }, at) =>
      !boxes
        .slice(at + 1)
        .some((later) => starts.every((start, axis) => later.starts[axis] <= start && later.ends[axis] >= ends[axis])),
  );

class Joining {
  readonly #recorder: Recorder;
  readonly #assembly: Assembly;
  readonly #grid: Layout;

  constructor(recorder: Recorder, assembly: Assembly, grid: Layout) {
    this.#recorder = recorder;
    this.#assembly = assembly;
    this.#grid = grid;
  }

  /** Returns the elements of a range. Where boxes overlap, the last one wins. */
  joined(boxes: readonly Box[], range: Range, axis = 0): string {
    const { starts, ends } = range;
    if (boxes.length === 0) return this.#filling(range);
    if (axis === starts.length) return lastElement(boxes).name;
    const edges = [starts[axis], ends[axis], ...boxes.flatMap((box) => [box.starts[axis], box.ends[axis]])];
    const cuts = [...new Set(edges)].sort((a, b) => a - b);
    const names = cuts.slice(0, -1).map((start, at) => {
      const end = cuts[at + 1];
      const inside = boxes.filter((box) => box.starts[axis] < end && box.ends[axis] > start);
      const cut = { starts: starts.with(axis, start), ends: ends.with(axis, end) };
      return this.joined(
        inside.map((box) => this.#sliced(box, axis, start, end)),
        cut,
        axis + 1,
      );
    });
    return names.length === 1 ? names[0] : this.#recorder.node("Concat", names, { axis });
  }

  #sliced(box: Box, axis: number, start: number, end: number): Box {
    const first = box.starts[axis];
    if (first === start && box.ends[axis] === end) return box;
    const name = this.#recorder.node("Slice", [
      box.name,
      { sizes: [start - first] },
      { sizes: [end - first] },
      this.#recorder.numbers([axis], [1], "int64"),
    ]);
    return { name, starts: box.starts.with(axis, start), ends: box.ends.with(axis, end) };
  }

  #filling({ starts, ends }: Range): string {
    const { filling, dtype } = this.#assembly;
    const shape = ends.map((end, axis) => end - starts[axis]);
    if (typeof filling === "number") return this.#recorder.filled(filling, dtype, shape);
    const { strides } = this.#grid;
    const offset = strides.reduce((sum, stride, axis) => sum + stride * starts[axis], 0);
    return this.#recorder.view(filling, { shape, strides, offset }, dtype);
  }
}

/** Scatters the elements of the parts to their positions, one part after the other. */
function put(recorder: Recorder, { dtype, filling, parts }: Assembly, count: number): Recorded {
  const blocks = parts.map(({ layout }) => blocksOf(layout, count));
  const [first] = blocks;
  const isEqual = blocks.every((each) => each && each.rows === first!.rows);
  const shape = isEqual ? [first!.rows, first!.length] : [count];
  const whole = { shape, strides: isEqual ? [first!.length, 1] : [1], offset: 0 };
  const axis = isEqual ? 1 : 0;
  const start =
    typeof filling === "number" ? recorder.filled(filling, dtype, shape) : recorder.view(filling, whole, dtype);
  const name = parts.reduce((value, { layout, name: part }, at) => {
    const places = placesOf(isEqual ? blocks[at]!.inner : layout);
    const sizes = shape.with(axis, places.length);
    const constant = recorder.numbers(places, [places.length], "int64");
    const indices = isEqual ? recorder.node("Expand", [constant, { sizes }]) : constant;
    const elements = recorder.node("Reshape", [part, { sizes }]);
    return recorder.node("ScatterElements", [value, indices, elements], { axis });
  }, start);
  return { ...whole, name, dtype };
}
