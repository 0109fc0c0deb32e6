/**
 * A small model of two attention layers, trained as a user would, which prints its losses. Each token repeats the one
 * three positions before it.
 */
import {
  type AttentionPath,
  flashAttention,
  gather,
  logSoftmax,
  manualSeed,
  mean,
  neg,
  noGrad,
  randint,
  randn,
  sub_,
  type Tensor,
  tidy,
} from "../../src/index.ts";

const [BATCH, LENGTH, TOKENS, WIDTH, HEADS] = [4, 12, 6, 16, 2] as const;
const [RATE, DROPOUT, BACK] = [0.5, 0.1, 3] as const;

interface Layer {
  readonly project: Tensor;
  readonly back: Tensor;
}

const weight = (from: number, to: number): Tensor => {
  const drawn = randn([from, to])
    .mul(1 / Math.sqrt(from))
    .detach();
  drawn.requiresGrad = true;
  return drawn;
};

const makeLayer = (): Layer => ({ project: weight(WIDTH, 3 * WIDTH), back: weight(WIDTH, WIDTH) });

/** x + attention(x): queries, keys and values are views of one projection. */
function attend(x: Tensor, { project, back }: Layer, path: AttentionPath): Tensor {
  const heads = x
    .matmul(project)
    .reshape([BATCH, LENGTH, 3, HEADS, WIDTH / HEADS])
    .permute([2, 0, 3, 1, 4]);
  const [q, k, v] = heads.unbind() as [Tensor, Tensor, Tensor];
  const joined = flashAttention(q, k, v, { causal: true, dropout: DROPOUT, path }).transpose(1, 2);
  return x.add(joined.reshape([BATCH, LENGTH, WIDTH]).matmul(back)) as Tensor;
}

/**
 * The loss of each step of a training run from a seed, on the current backend.
 *
 * @param beforeStep is called with the number of each step
 */
export function trainAttention(
  steps: number,
  seed: number,
  path: AttentionPath,
  beforeStep: (step: number) => void = () => undefined,
): number[] {
  manualSeed(seed);
  const embedding = weight(TOKENS, WIDTH);
  const places = weight(LENGTH, WIDTH);
  const layers = [makeLayer(), makeLayer()];
  const out = weight(WIDTH, TOKENS);
  const parameters = [embedding, places, out, ...layers.flatMap(({ project, back }) => [project, back])];
  const tokens = randint(0, TOKENS, [BATCH, LENGTH + BACK]);
  const [seen, wanted] = [tokens.narrow(1, BACK, LENGTH), tokens.narrow(1, 0, LENGTH)];
  return Array.from({ length: steps }, (_, step) =>
    tidy(() => {
      beforeStep(step);
      const embedded = embedding.indexSelect(seen.reshape([-1]), { dim: 0 }).reshape([BATCH, LENGTH, WIDTH]);
      const x = layers.reduce((rows, layer) => attend(rows, layer, path), embedded.add(places) as Tensor);
      const logs = logSoftmax(x.matmul(out));
      const loss = neg(mean(gather(logs, wanted.unsqueeze(-1).contiguous(), { dim: 2 })));
      loss.backward();
      noGrad(() => {
        for (const parameter of parameters) {
          sub_(parameter, parameter.grad!.mul(RATE));
          parameter.grad = null;
        }
      });
      return Number(loss.item());
    }),
  );
}
