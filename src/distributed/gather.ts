/** The calls of `broadcast`, `allGather` and `allToAll`, which move elements unchanged. */
import { noGrad } from "../autograd/modes.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { checkTarget } from "../ops/copy/inplace.ts";
import { reshape } from "../ops/view/reshape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import type { Call } from "./call.ts";
import { exchangeOf } from "./exchange.ts";
import { elementsOf, held, ownCopy, ownEmpty, published } from "./memory.ts";
import { partShape } from "./reduce.ts";
import { checkRank, worldOf } from "./world.ts";

/** Returns the call of `broadcast`. @throws {ArgumentError} @throws {AutogradError} */
export function broadcastCall(operation: string, x: Tensor, src: number, inPlace: boolean): Call {
  const { rank } = worldOf(operation);
  checkRank(operation, "src", src);
  if (inPlace) checkTarget(operation, x, []);
  const local = rank === src ? ownCopy(x) : ownEmpty(x.shape, x.dtype, operation);
  return {
    operation,
    x,
    from: local,
    description: `broadcast ${x.describe()} from rank ${src}`,
    *steps({ mpi, everyone }) {
      yield mpi.broadcast(operation, everyone, elementsOf(operation, local), src);
      return local;
    },
    alone: () => local,
    target: inPlace
      ? (result) => {
          if (rank !== src) copyInto(x, result);
          result.dispose();
          return x;
        }
      : undefined,
  };
}

/** Returns the call of `allGather`. */
export function allGatherCall(operation: string, x: Tensor): Call {
  const { worldSize } = worldOf(operation);
  const from = held(x);
  const [rows = 1, ...others] = x.shape;
  return {
    operation,
    x,
    from,
    description: `allGather ${x.describe()}`,
    *steps({ mpi, everyone }) {
      const result = ownEmpty([worldSize * rows, ...others], x.dtype, operation);
      yield mpi.allGather(operation, everyone, elementsOf(operation, from), elementsOf(operation, result));
      from.dispose();
      return result;
    },
    alone: () => {
      const copy = ownCopy(from);
      from.dispose();
      return x.rank > 0 ? copy : noGrad(() => keep(reshape(copy, [1])));
    },
  };
}

/**
 * @internal Joins x of all ranks along a new first axis, over the exchange of training.
 *
 * @param x contiguous, of the same shape and dtype on every rank
 */
export function gather(operation: string, x: Tensor): Tensor {
  const { connection, worldSize } = worldOf(operation);
  const { queue } = connection!;
  const exchange = exchangeOf(connection!);
  const steps = function* () {
    const result = ownEmpty([worldSize, ...x.shape], x.dtype, operation);
    yield exchange.allGather(operation, x, result);
    result.storage.version++;
    return result;
  };
  const description = `${operation} over ${exchange.name}: gather ${x.describe()}`;
  return published(queue.wait(queue.begin(operation, description, steps, () => exchange.isReady(x))));
}

/** Returns the call of `allToAll`. @throws {ShapeError} */
export function allToAllCall(operation: string, x: Tensor): Call {
  const { worldSize } = worldOf(operation);
  partShape(operation, x, worldSize);
  const from = held(x);
  return {
    operation,
    x,
    from,
    description: `allToAll ${x.describe()}`,
    *steps({ mpi, everyone }) {
      const result = ownEmpty(x.shape, x.dtype, operation);
      const [sent, received] = [elementsOf(operation, from), elementsOf(operation, result)];
      yield mpi.allToAll(operation, everyone, sent, received, x.size / worldSize);
      from.dispose();
      return result;
    },
    alone: () => {
      const copy = ownCopy(from);
      from.dispose();
      return copy;
    },
  };
}
