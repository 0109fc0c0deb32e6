/** A model that generates a given text, as far as its constraint allows. */
import { nn, type Tensor, tensor } from "../../src/index.ts";

const sizes = { vocabularySize: 256, contextLength: 512, layers: 1, heads: 1, width: 8 };

/** Generates a text as bytes for any prompt, then only zeros. */
export class Scripted extends nn.Llama {
  script = new Uint8Array();
  private said = 0;

  constructor() {
    super(sizes);
  }

  says(text: string): void {
    this.script = new TextEncoder().encode(text);
    this.said = 0;
  }

  override forward(tokens: Tensor, inputs?: nn.LanguageModelInputs): Tensor {
    super.forward(tokens, inputs).dispose();
    const next = this.script[this.said++] ?? 0;
    return tensor([[Array.from({ length: 256 }, (_, token) => (token === next ? 50 : 0))]], { dtype: "float32" });
  }
}
