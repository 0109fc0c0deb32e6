/** Classes of users that extend layers: the compiler is the test (`bun run check`). */
import { type FloatDType, nn, randn, relu, type Tensor } from "../../src/index.ts";
import type { Equals, True } from "./expect.ts";

type Layers = typeof nn;
type Override = (x: Tensor) => Tensor;
/**
 * The layers of one tensor whose `forward` a class can't override with `forward(x: Tensor): Tensor`. Containers without
 * a forward, such as `ModuleList`, are no layers.
 */
type RefusedBy<Layer> = Layer extends { forward(x: Tensor): infer Result extends Tensor }
  ? [Result] extends [never]
    ? false
    : Override extends Layer["forward"]
      ? false
      : true
  : false;
type Refusing = {
  [Name in keyof Layers]: Layers[Name] extends abstract new (
    ...values: never
  ) => infer Layer
    ? RefusedBy<Layer> extends false
      ? never
      : Name
    : never;
}[keyof Layers];
export type EveryLayer = True<Equals<Refusing, never>>;

class ScaledLinear extends nn.Linear {
  override forward(x: Tensor): Tensor {
    return super.forward(x).mul(0.5);
  }
}
class HalfLinear extends nn.Linear<"float16"> {
  override forward(x: Tensor): Tensor<"float16"> {
    return super.forward(x);
  }
}
class ClippedReLU extends nn.ReLU {
  override forward(x: Tensor): Tensor {
    return super.forward(x).clamp({ max: 6 });
  }
}
class TwoSteps extends nn.Sequential {
  constructor() {
    super(new nn.Linear(4, 4), relu);
  }

  override forward(x: Tensor): Tensor {
    return super.forward(x).add(x);
  }
}
class AlwaysDropout extends nn.Dropout {
  override forward(x: Tensor): Tensor {
    return this.train().forward(x);
  }
}
class Pool extends nn.MaxPool2d {
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }
}
class MeanPool extends nn.AdaptiveAvgPool2d {
  override forward(x: Tensor): Tensor {
    return super.forward(x).flatten(1);
  }
}
class WideNorm extends nn.LayerNorm {
  override forward(x: Tensor): Tensor {
    return super.forward(x.to("float32")).to(x.dtype);
  }
}
class WideRMSNorm extends nn.RMSNorm {
  override forward(x: Tensor) {
    return super.forward(x.to("float32"));
  }
}
class FrozenNorm extends nn.BatchNorm2d {
  override forward(x: Tensor): Tensor {
    return this.eval() && super.forward(x);
  }
}
class Grouped extends nn.GroupNorm {
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }
}
class SameConv extends nn.Conv2d {
  override forward(x: Tensor): Tensor {
    return super.forward(x.to(this.weight.dtype));
  }
}
class ScaledEmbedding extends nn.Embedding {
  override forward(indices: Tensor): Tensor {
    return super.forward(indices).mul(this.width ** 0.5);
  }
}
class Bags extends nn.EmbeddingBag {
  override forward(indices: Tensor): Tensor {
    return super.forward(indices);
  }
}
class Padded extends nn.ZeroPad2d {
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }
}
class Upsampled extends nn.Upsample {
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }
}
class Same extends nn.Identity {
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }
}

// Such a class is used where the layer is, and in chains. Its dtype is that which its `forward` states.
export const linears: readonly nn.Linear[] = [new ScaledLinear(2, 2), new HalfLinear(2, 2, { dtype: "float16" })];
export const steps: readonly nn.Module<[x: Tensor], Tensor>[] = [
  ...linears,
  new ClippedReLU(),
  new TwoSteps(),
  new AlwaysDropout(0.1),
  new Pool(2),
  new MeanPool(1),
  new WideNorm(2),
  new WideRMSNorm(2),
  new FrozenNorm(2),
  new Grouped(1, 2),
  new SameConv(1, 1, 3),
  new ScaledEmbedding(4, 2),
  new Bags(4, 2),
  new Padded(1),
  new Upsampled({ scaleFactor: 2 }),
  new Same(),
];
const x = randn([2, 2]);
const scaled = new ScaledLinear(2, 2).forward(x);
const halves = new HalfLinear(2, 2, { dtype: "float16" }).forward(x);
const wide = new WideRMSNorm(2).forward(x);
const chain = new nn.Sequential(new ClippedReLU(), new HalfLinear(2, 2, { dtype: "float16" }));
const mixed = new nn.Sequential(new HalfLinear(2, 2, { dtype: "float16" }), new ScaledLinear(2, 2));
export type OfClasses = [
  True<Equals<typeof scaled, Tensor>>,
  True<Equals<typeof halves, Tensor<"float16">>>,
  True<Equals<typeof wide, Tensor<FloatDType>>>,
  True<Equals<ReturnType<typeof chain.forward>, Tensor<"float16">>>,
  True<Equals<ReturnType<typeof mixed.forward>, Tensor>>,
];

// @ts-expect-error the weight has another dtype
export const wrong: Tensor<"float32"> = new nn.Linear(2, 2, { dtype: "float16" }).forward(x);
// @ts-expect-error the dtype of a layer without an option is any float dtype
export const narrow: Tensor<"float16"> = new nn.Linear(2, 2).forward(x);
