import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type {
  BatchNormAttributes,
  BatchNormGradientName,
  BatchNormGradientOperands,
  BatchNormName,
} from "./batch_norm_primitive.ts";
import { type Named, namedTensors } from "./problem.ts";

/** The inputs and results of a forward call. Statistics are either. */
type Given = Named<BatchNormName> & { readonly x: Tensor };
type Found = Named<BatchNormName> & { readonly out: Tensor };

/** Computes the definition channel by channel. */
export const batchNormReference: Implementation<BatchNormAttributes<BatchNormName>> = {
  run({ inputs, outputs, attributes }) {
    const given = namedTensors<Given>(attributes.inputs, inputs);
    const found = namedTensors<Found>(attributes.outputs, outputs);
    const x = toNumbers(given.x);
    const [weight, bias] = [given.weight && toNumbers(given.weight), given.bias && toNumbers(given.bias)];
    const places = placesOf(given.x);
    const means = given.mean
      ? toNumbers(given.mean)
      : places.map((members) => sumOf(members.map((place) => x[place])) / members.length);
    const variances = given.variance
      ? toNumbers(given.variance)
      : places.map(
          (members, channel) => sumOf(members.map((place) => (x[place] - means[channel]) ** 2)) / members.length,
        );
    const out = new Float64Array(x.length);
    for (const [channel, members] of places.entries())
      for (const place of members) {
        const normalized = (x[place] - means[channel]) / Math.sqrt(variances[channel] + attributes.eps);
        out[place] = normalized * (weight?.[channel] ?? 1) + (bias?.[channel] ?? 0);
      }
    store(found.out, out);
    if (found.mean) store(found.mean, means);
    if (found.variance) store(found.variance, variances);
  },
};

export const batchNormGradientReference: Implementation<BatchNormAttributes<BatchNormGradientName>> = {
  run({ inputs, outputs, attributes }) {
    const given = namedTensors<BatchNormGradientOperands>(attributes.inputs, inputs);
    const found = namedTensors<Named<BatchNormGradientName>>(attributes.outputs, outputs);
    const [x, gradient] = [toNumbers(given.x), toNumbers(given.gradOut)];
    const [means, variances] = [toNumbers(given.mean), toNumbers(given.variance)];
    const weight = given.weight && toNumbers(given.weight);
    const places = placesOf(given.x);
    const gradX = new Float64Array(x.length);
    const sums = places.map((members, channel) => {
      const scale = 1 / Math.sqrt(variances[channel] + attributes.eps);
      const normalized = members.map((place) => (x[place] - means[channel]) * scale);
      const ofBias = sumOf(members.map((place) => gradient[place]));
      const ofWeight = sumOf(members.map((place, at) => gradient[place] * normalized[at]));
      for (const [at, place] of members.entries()) {
        const rest = gradient[place] - ofBias / members.length - (normalized[at] * ofWeight) / members.length;
        gradX[place] = scale * (weight?.[channel] ?? 1) * rest;
      }
      return { ofBias, ofWeight };
    });
    if (found.gradX) store(found.gradX, gradX);
    const ofChannels = (name: "ofBias" | "ofWeight") => sums.map((each) => each[name]);
    if (found.gradWeight) store(found.gradWeight, ofChannels("ofWeight"));
    if (found.gradBias) store(found.gradBias, ofChannels("ofBias"));
  },
};

/** Returns the positions of each channel's elements. */
function placesOf({ shape }: Tensor): number[][] {
  const [batch, channels, inner] = tupleOf(shape, 3);
  return Array.from({ length: channels }, (_, channel) =>
    Array.from({ length: batch * inner }, (_element, at) => {
      const element = Math.floor(at / inner);
      return (element * channels + channel) * inner + (at % inner);
    }),
  );
}
