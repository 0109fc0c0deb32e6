/**
 * Calls the public names that the tables of arguments do not call successfully: names for files, for state, and of
 * classes that functions construct. There is one line for each name, which checks what the name does.
 */
import { join } from "node:path";
import * as orchard from "../../src/index.ts";
import * as onnx from "../onnx/write.ts";

const { data, diffusion, distributed, distributions, io, nn, ones, optim, tensor, text, zeros } = orchard;

/** @throws if the condition of a line is false */
function holds(condition: boolean): void {
  if (!condition) throw new Error("the line's condition is false");
}

/** The line must throw an error whose message begins like this. */
async function refused(line: () => unknown, message: string): Promise<void> {
  const outcome = await Promise.try(line).catch((error: unknown) => error);
  holds(outcome instanceof orchard.OrchardError && outcome.message.startsWith(message));
}

type Lines = Readonly<Record<string, () => unknown>>;

const pixels = () => ones([2, 2, 3], { dtype: "uint8" });
const sizes = { vocabularySize: 256, contextLength: 8, layers: 1, heads: 1, width: 4 };
const model = () => new nn.GPT(sizes);
const weights = () => ({ x: tensor([1, 2]) });
const isX = (found: orchard.Tensor | undefined) => holds(found?.toArray().toString() === "1,2");
const line = "It was the best of times. ";
const tokenizer = () => data.trainBpe(line.repeat(20), { size: 270 });

/** A Parquet file that pyarrow wrote: a column x of 1 and 2 in float32. */
const parquet = [
  "UEFSMRUAFRwVHCwVBBUAFQYVBhwAAAACAAAABAEAAIA/AAAAQBUEGSw1ABgGc2NoZW1hFQIAFQglAhgBeAAWBBkcGRwmABwVCBkl",
  "BgAZGAF4FQAWBBZCFkImCEkcFQAVABUCADwpBhkmAAQAAAAWQhYEJggWQgAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjYu",
  "MC4xGRwcAAAAegAAAFBBUjE=",
].join("");

class Doubled extends orchard.Function {
  static forward(context: orchard.FunctionContext, x: orchard.Tensor): orchard.Tensor {
    holds(context instanceof orchard.FunctionContext);
    return x.mul(2);
  }
  static backward(_: orchard.FunctionContext, gradient: orchard.Tensor | null): orchard.Tensor {
    return gradient!.mul(2);
  }
}

function doubled(): void {
  const x = tensor([1, 2], { requiresGrad: true });
  Doubled.apply(x).sum().backward();
  holds(x.grad?.toArray().toString() === "2,2");
}

class Twice extends nn.Module {
  readonly layer = new nn.Linear(2, 2);
  forward(x: orchard.Tensor): orchard.Tensor {
    return this.layer.forward(this.layer.forward(x));
  }
}

const general: Lines = {
  output: () => holds(orchard.output(Float32Array, 2).length === 2),
  Function: doubled,
  FunctionContext: doubled,
  Tensor: () => holds(orchard.Tensor.isTensor(tensor([1])) && tensor([1]) instanceof orchard.Tensor),
  QuantizedTensor: () => holds(orchard.quantize(ones([2, 64])) instanceof orchard.QuantizedTensor),
  PerTensorWeights: () => holds(orchard.quantizePerTensor(ones([2, 64])) instanceof orchard.PerTensorWeights),
  SmoothWeights: () => holds(orchard.smoothQuantize(ones([2, 64]), ones([64])) instanceof orchard.SmoothWeights),
  backendNames: () => holds(orchard.backendNames.includes("reference")),
  codepaths() {
    orchard.resetCodepaths();
    tensor([1]).exp();
    holds(orchard.codepaths().some(({ operation }) => operation === "exp"));
  },
  resetCodepaths() {
    tensor([1]).exp();
    orchard.resetCodepaths();
    holds(orchard.codepaths().length === 0);
  },
  formatCodepaths() {
    tensor([1]).exp();
    holds(orchard.formatCodepaths(orchard.codepaths()).includes("exp"));
  },
  getBackend: () => holds(orchard.backendNames.includes(orchard.getBackend())),
  isStrict: () => holds(!orchard.isStrict()),
  isGradEnabled: () => holds(orchard.isGradEnabled() && !orchard.noGrad(orchard.isGradEnabled)),
  overrides: () => holds(orchard.overrides().length === 0),
  routes: () => holds(Array.isArray(orchard.routes())),
  memory: () => holds(orchard.memory().host.peakBytes > 0),
  resetPeakMemory() {
    orchard.resetPeakMemory();
    const { liveBytes, peakBytes } = orchard.memory().host;
    holds(peakBytes >= liveBytes);
  },
};

function toNobody(name: string, ...values: unknown[]): Promise<void> {
  const call = distributed[name as keyof typeof distributed] as (...values: unknown[]) => unknown;
  return refused(() => call(...values), `[${name}] expected ${name.startsWith("send") ? "dst" : "src"} to be a rank`);
}

const ofLayers: Lines = {
  async "data.Progress"() {
    const items = data.progress([1, 2]);
    holds(items instanceof data.Progress && (await Array.fromAsync(items)).join() === "1,2");
  },
  "data.TextStream": () => holds(new data.ByteTokenizer().decoder() instanceof data.TextStream),
  "nn.Module": () => holds(new Twice().parameters().length === 2 && new Twice().forward(ones([2])).shape[0] === 2),
  CompileError: () =>
    refused(
      () => orchard.withBackend("cpu", () => orchard.compile((x: orchard.Tensor) => x.item())(ones([1]))),
      "[compile] the function reads",
    ),
  "nn.StateDictError"() {
    try {
      new nn.Linear(2, 2).loadStateDict({ other: ones([1]) });
    } catch (error) {
      return holds(error instanceof nn.StateDictError && error.unexpected.join() === "other");
    }
    throw new Error("the state was loaded");
  },
  "nn.createModel"() {
    const sizes = { hidden_size: 4, intermediate_size: 4, num_hidden_layers: 1, num_attention_heads: 1 };
    const config = { ...sizes, model_type: "vit", image_size: 4, patch_size: 2 };
    holds(
      nn
        .createModel<orchard.nn.VisionEncoder>(config)
        .forward(ones([1, 3, 4, 4]))
        .shape.join() === "1,5,4",
    );
  },
  "nn.LanguageModel": () => holds(model() instanceof nn.LanguageModel),
  "nn.TokenStream"() {
    using batcher = new nn.Batcher(model());
    const stream = batcher.submit([1], { maxTokens: 1 });
    holds(stream instanceof nn.TokenStream);
    stream.cancel();
  },
  "nn.generateText": () => nn.generateText(model(), new data.ByteTokenizer(), "a", { maxTokens: 1, temperature: 0 }),
  "nn.noInitialization": () => new nn.Linear(2, 2, { initialization: nn.noInitialization }),
  "nn.pytorchInitialization": () => new nn.Linear(2, 2, { initialization: nn.pytorchInitialization }),
  "distributions.Distribution": () => holds(new distributions.Normal(0, 1) instanceof distributions.Distribution),
  "distributions.Transform": () => holds(new distributions.ExpTransform() instanceof distributions.Transform),
  "diffusion.Scheduler": () => holds(diffusion.ddpm() instanceof diffusion.Scheduler),
  "diffusion.Sampler": () => holds(diffusion.ddim().sampler(2) instanceof diffusion.Sampler),
  "diffusion.Pipeline": () =>
    refused(() => Reflect.construct(diffusion.Pipeline, []), "[Pipeline] it can't be constructed directly"),
  "diffusion.loadPipeline": () => refused(() => diffusion.loadPipeline("none"), "[loadPipeline]"),
  "optim.Optimizer": () => holds(new optim.SGD([zeros([2], { requiresGrad: true })]) instanceof optim.Optimizer),
  "optim.constant": () => holds(optim.constant()(3) === 1),
  "distributed.DataParallel": () =>
    holds(distributed.dataParallel(new nn.Linear(2, 2)) instanceof distributed.DataParallel),
  // A world of size 1 has no other rank.
  ...Object.fromEntries(
    ["send", "sendAsync"].map((name) => [`distributed.${name}`, () => toNobody(name, ones([2]), { dst: 1 })]),
  ),
  ...Object.fromEntries(
    ["receive", "receiveAsync"].map((name) => [
      `distributed.${name}`,
      () => toNobody(name, [2], { src: 1, dtype: "float32" }),
    ]),
  ),
};

/** Returns the path of a file that the lines write. */
type Paths = (name: string) => string;

/** Data sets, tokenizers and processors. */
const ofData = (at: Paths): Lines => {
  const dataset = async () => {
    await Bun.write(at("books/one.txt"), line.repeat(40));
    const options = { paths: at("books"), tokenizer: new data.ByteTokenizer(), contextLength: 4 };
    return data.openTextDataset({ ...options, cacheFolder: at(".") });
  };
  const workers = async () => {
    await Bun.write(at("items.ts"), "export default () => ({ length: 2, get: (index: number) => -index });\n");
    return data.openWorkerDataset<number>(at("items.ts"), { workers: 1 });
  };
  return {
    "data.BpeTokenizer": () => holds(tokenizer().decode(tokenizer().encode(line)) === line),
    "data.TrainingWindows": async () => holds((await dataset()).train instanceof data.TrainingWindows),
    "data.HeldOutWindows": async () => holds((await dataset()).heldOut instanceof data.HeldOutWindows),
    async "data.WorkerDataset"() {
      using items = await workers();
      holds(items instanceof data.WorkerDataset);
    },
    async "data.openWorkerDataset"() {
      using items = await workers();
      holds((await items.get(1)) === -1);
    },
    async "nn.loadImageProcessor"() {
      const settings = { image_processor_type: "ViTImageProcessor", size: { height: 2, width: 3 } };
      await Bun.write(at("processor/preprocessor_config.json"), JSON.stringify(settings));
      const image = ones([3, 4, 4], { dtype: "uint8" });
      holds(nn.loadImageProcessor(at("processor")).process(image).shape.join() === "1,3,2,3");
    },
    async "nn.loadChatProcessor"() {
      await Bun.write(at("without_images/config.json"), '{ "model_type": "llama" }');
      let message = "";
      try {
        nn.loadChatProcessor(at("without_images"));
      } catch (error) {
        message = String(error); // lists the models with images
      }
      holds(message.includes("qwen2_vl"));
    },
    async "text.loadTokenizer"() {
      await Bun.write(at("tokenizer/tokenizer.json"), JSON.stringify(tokenizer()));
      const loaded = text.loadTokenizer(at("tokenizer"));
      holds(loaded.decode(loaded.encode(line)) === line);
    },
  };
};

/** Sound and pictures. */
const ofMedia = (at: Paths): Lines => ({
  async "data.ImageFolder"() {
    await Bun.write(at("pictures/a/one.png"), await io.encodeImage(pixels(), { format: "png", channels: "last" }));
    holds(new data.ImageFolder(at("pictures")).length === 1);
  },
  async "io.loadAudio"() {
    const wav = Buffer.from("UklGRgAAAABXQVZFZm10IBAAAAABAAEAQB8AAAAAAAAAAAgAZGF0YQEAAADA", "base64");
    const flac = Buffer.from("ZkxhQ4AAACIAwADAAAAAAAAAA+gA8AAAAMAAAAAAAAAAAAAAAAAAAAAA//gVCABAAEAA9Fw=", "base64");
    for (const file of [wav, flac]) holds((await io.loadAudio(file)).samples.max().item() === 0.5);
    const silence = Buffer.alloc(6 * 417); // frames of MPEG-1 layer III
    for (let at = 0; at < silence.length; at += 417) silence.set([0xff, 0xfb, 0x90, 0xc4], at);
    holds((await io.loadAudio(silence)).sampleRate === 44_100);
  },
  async "io.loadImage"() {
    await io.saveImage(at("one.png"), pixels(), { channels: "last" });
    const picture = await io.loadImage(at("one.png"), { channels: "last" });
    holds(picture.shape.join() === "2,2,3");
  },
});

/** ONNX files, and files of arrays and tables. */
const ofTables = (at: Paths): Lines => ({
  async "io.loadOnnx"() {
    const bytes = onnx.model(
      onnx.graph({
        nodes: [onnx.node("Add", ["x", "bias"], ["y"])],
        initializers: [onnx.initializer("bias", [2], [0, 1])],
        inputs: [onnx.tensorInput("x", [2])],
        outputs: [onnx.tensorInput("y", [2])],
      }),
    );
    const model = await io.loadOnnx(bytes);
    const { y } = await model.run({ x: ones([2]) });
    isX(y as orchard.Tensor);
    holds((await model.toSvg()).includes("Add"));
  },
  async "io.saveOnnx"() {
    const bytes = await io.saveOnnx(new nn.Flatten(), { x: ones([2, 3, 4]) }, { axes: { x: { 0: "batch" } } });
    const { output } = await (await io.loadOnnx(bytes)).run({ x: ones([1, 3, 4]) });
    holds((output as orchard.Tensor).shape.join() === "1,12");
  },
  async "io.loadNpy"() {
    await io.saveNpy(at("x.npy"), tensor([1, 2]));
    isX(io.loadNpy(at("x.npy")));
  },
  async "io.loadNpz"() {
    await io.saveNpz(at("x.npz"), weights(), { compressed: true });
    isX(io.loadNpz(at("x.npz"))["x"]);
  },
  async "io.loadCsv"() {
    await Bun.write(at("x.csv"), "x\n1.0\n2.0\n");
    isX((await io.loadCsv(at("x.csv")))["x"] as orchard.Tensor);
  },
  async "io.loadParquet"() {
    await Bun.write(at("x.parquet"), Buffer.from(parquet, "base64"));
    isX((await io.loadParquet(at("x.parquet")))["x"] as orchard.Tensor);
  },
});

/** Files of weights, and programs. */
const ofWeights = (at: Paths): Lines => ({
  async "io.loadSafetensors"() {
    await io.saveSafetensors(at("x.safetensors"), weights());
    isX(io.loadSafetensors(at("x.safetensors"))["x"]);
  },
  async loadProgram() {
    const double = orchard.compile((x: orchard.Tensor) => x.mul(2));
    for (let call = 0; call < 3; call++) orchard.withBackend("cpu", () => double(ones([1])));
    await double.save(at("x.program"));
    holds((orchard.loadProgram(at("x.program"))(ones([1])) as orchard.Tensor).item() === 2);
  },
  async "io.openSafetensors"() {
    await io.saveSafetensors(at("y.safetensors"), weights());
    using file = io.openSafetensors(at("y.safetensors"));
    holds(file.names.join() === "x");
  },
  async "io.loadWeights"() {
    await io.saveSafetensors(at("z.safetensors"), weights());
    holds(Object.keys(io.loadWeights(at("z.safetensors"))).length > 0);
  },
  async "io.openGguf"() {
    await io.saveGguf(at("x.gguf"), weights());
    using file = io.openGguf(at("x.gguf"));
    holds(file.names.join() === "x");
  },
  async "io.loadCheckpoint"() {
    await io.saveCheckpoint(at("run"), { model: weights(), step: 1, generator: new orchard.Generator() });
    holds((await io.loadCheckpoint(at("run"))).step === 1);
  },
});

/** @param folder for the files that the lines write */
const ofFiles = (folder: string): Lines => {
  const at = (name: string) => join(folder, name);
  return { ...ofData(at), ...ofMedia(at), ...ofTables(at), ...ofWeights(at) };
};

const saxpy = {
  name: "saxpy",
  source: `#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float *x, device float *y, constant float &a, uint i [[thread_position_in_grid]]) {
    y[i] += a * x[i];
}`,
};

/** Lines that need a device. Without a device, each of them throws an error. */
export const ofMetal: Lines = {
  MetalContext: () => holds(orchard.metalContext() instanceof orchard.MetalContext),
  metalContext: () => holds(orchard.metalContext().deviceInfo().name !== ""),
  MetalKernel: () => new orchard.MetalKernel(saxpy),
  metalKernel() {
    const bindings = { x: new Float32Array([1, 2]), y: new Float32Array([3, 4]), a: 2 };
    const { y } = orchard.metalKernel(saxpy).run(bindings, { grid: 2 }).outputs;
    holds(String(y) === "5,8");
  },
  DeviceBuffer() {
    using buffer = new orchard.DeviceBuffer(new Float32Array([1, 2]));
    holds(String(buffer.read(Float32Array)) === "1,2");
  },
  kernelOverride: () =>
    orchard.kernelOverride(orchard.metalKernel(saxpy), () => ({ bindings: {}, options: { grid: 1 } })),
};

export const linesIn = (folder: string): Lines => ({ ...general, ...ofLayers, ...ofFiles(folder) });
