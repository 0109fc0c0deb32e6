/** What to load instead of popular models that are not supported, by `model_type`. */

const classifiers = "to classify images, load vit, deit, beit, dinov2, resnet, convnext, swin or segformer";
const speech = "to recognize speech, load whisper, or wav2vec2, hubert or wavlm with a CTC head";
const sounds = "sounds can't be classified or generated; to recognize speech, load whisper, wav2vec2 or hubert";
const pages = "to read text in images, load a vision-language model such as qwen2_5_vl or smolvlm";
const recurrent =
  "of recurrent language models mamba2, nemotron_h, falcon_h1, granitemoehybrid, lfm2 and qwen3_next load";
const detectors = "to find objects, load detr, rt_detr or yolos";
const experts = "of mixtures of experts mixtral, qwen3_moe, olmoe and granitemoe load";

const alternatives: Readonly<Record<string, string>> = {
  swinv2: classifiers,
  efficientnet: classifiers,
  regnet: classifiers,
  mobilenet_v1: classifiers,
  mobilenet_v2: classifiers,
  mobilevit: classifiers,
  timm_wrapper: classifiers,
  "wav2vec2-bert": speech,
  "wav2vec2-conformer": speech,
  moonshine: speech,
  parakeet: speech,
  speech_to_text: speech,
  seamless_m4t_v2: speech,
  unispeech: speech,
  "data2vec-audio": speech,
  "audio-spectrogram-transformer": sounds,
  clap: sounds,
  musicgen: sounds,
  encodec: sounds,
  vits: sounds,
  bark: sounds,
  speecht5: sounds,
  "vision-encoder-decoder": pages,
  donut: pages,
  pix2struct: pages,
  florence2: pages,
  blip: pages,
  git: pages,
  layoutlm: pages,
  layoutlmv3: pages,
  phi3_v: pages,
  phi4_multimodal: pages,
  mllama: pages,
  nougat: pages,
  "table-transformer": detectors,
  rt_detr_v2: detectors,
  "grounding-dino": detectors,
  owlvit: detectors,
  owlv2: detectors,
  conditional_detr: detectors,
  deformable_detr: detectors,
  zamba2: recurrent,
  recurrent_gemma: recurrent,
  rwkv: recurrent,
  jetmoe: experts,
};

/** Returns advice about a model that is not supported; undefined for other models. */
export const alternativeTo = (type: string | undefined): string | undefined =>
  type !== undefined && Object.hasOwn(alternatives, type) ? alternatives[type] : undefined;
