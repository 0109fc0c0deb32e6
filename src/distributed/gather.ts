/** The calls of `broadcast`, `allGather` and `allToAll`, which move elements unchanged. */
import { noGrad } from "../autograd/modes.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { checkTarget } from "../ops/copy/inplace.ts";
import { reshape } from "../ops/view/reshape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import type { Call } from "./call.ts";
import { elementsOf, held, ownCopy, ownEmpty } from "./memory.ts";
import { partShape } from "./reduce.ts";
import { checkRank, worldOf } from "./world.ts";

/** The call of `broadcast`. @throws {ArgumentError} @throws {AutogradError} */
export function broadcastCall(operation: string, x: Tensor, src: number, inPlace: boolean): Call {
  const { rank } = worldOf(operation);
  checkRank(operation, "src", src);
  if (inPlace) checkTarget(operation, x, []);
  const local = rank === src ? ownCopy(x) : ownEmpty(x.shape, x.dtype, operation);
  return {
    ...{ operation, x, from: local },
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

/** The call of `allGather`. */
export function allGatherCall(operation: string, x: Tensor): Call {
  const { worldSize } = worldOf(operation);
  const from = held(x);
  const [rows = 1, ...others] = x.shape;
  return {
    ...{ operation, x, from },
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

/** The call of `allToAll`. @throws {ShapeError} */
export function allToAllCall(operation: string, x: Tensor): Call {
  const { worldSize } = worldOf(operation);
  partShape(operation, x, worldSize);
  const from = held(x);
  return {
    ...{ operation, x, from },
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
