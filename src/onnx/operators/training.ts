/** Optimizer steps of ai.onnx.preview.training. */
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operator, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";

/** Updates one parameter. `tensors` are its values, its gradient and its optimizer states. */
type Update = (call: Call, rate: number, step: number, tensors: readonly Tensor[]) => readonly Tensor[];

/** Returns an optimizer's operator. Its inputs are the learning rate, the step, all parameters, all gradients, etc. */
const optimizer =
  (kinds: number, update: Update): Operator =>
  (call) => {
    const [rate = 0, step = 0] = [call.number(0), call.number(1)];
    const count = (call.inputs.length - 2) / kinds;
    if (!Number.isInteger(count)) throw new NodeProblem(`expected ${kinds} tensors for each parameter`);
    const updated = Array.from({ length: count }, (_, at) =>
      update(
        call,
        rate,
        step,
        Array.from({ length: kinds }, (_, kind) => call.tensor(2 + kind * count + at)),
      ),
    );
    return new Results(...Array.from({ length: kinds - 1 }, (_, kind) => updated.map((each) => each[kind])).flat());
  };

const number = (call: Call, name: string, byDefault: number) => call.attributes.number(name, byDefault);

/** Adds the gradient of an L2 penalty. */
const penalized = (call: Call, x: Tensor, gradient: Tensor): Tensor =>
  ops.add(gradient, ops.mul(x, number(call, "norm_coefficient", 0)));

const adagrad: Update = (call, rate, step, [x, gradient, squares]) => {
  const g = penalized(call, x, gradient);
  const sum = ops.add(squares, ops.mul(g, g));
  const decayed = rate / (1 + step * number(call, "decay_factor", 0));
  const scale = ops.add(ops.sqrt(sum), number(call, "epsilon", 1e-6));
  return [ops.sub(x, ops.div(ops.mul(g, decayed), scale)), sum];
};

const adam: Update = (call, rate, step, [x, gradient, first, second]) => {
  const [alpha, beta] = [number(call, "alpha", 0.9), number(call, "beta", 0.999)];
  const g = penalized(call, x, gradient);
  const v = ops.add(ops.mul(first, alpha), ops.mul(g, 1 - alpha));
  const h = ops.add(ops.mul(second, beta), ops.mul(ops.mul(g, g), 1 - beta));
  const adjusted = step > 0 ? (rate * Math.sqrt(1 - beta ** step)) / (1 - alpha ** step) : rate;
  const moved = ops.sub(x, ops.div(ops.mul(v, adjusted), ops.add(ops.sqrt(h), number(call, "epsilon", 1e-6))));
  return [ops.mul(moved, 1 - number(call, "norm_coefficient_post", 0)), v, h];
};

const momentum: Update = (call, rate, step, [x, gradient, velocity]) => {
  const alpha = number(call, "alpha", 0);
  const g = penalized(call, x, gradient);
  const v = ops.add(ops.mul(velocity, alpha), ops.mul(g, step > 0 ? number(call, "beta", 0) : 1));
  const isNesterov = call.attributes.choice("mode", ["standard", "nesterov"], "standard") === "nesterov";
  return [ops.sub(x, ops.mul(isNesterov ? ops.add(g, ops.mul(v, alpha)) : v, rate)), v];
};

export const optimizers: Operators = {
  Adagrad: optimizer(3, adagrad),
  Adam: optimizer(4, adam),
  Momentum: optimizer(3, momentum),
};
