/**
 * Teaches a model new facts with LoRA: `bun examples/fine-tune.ts FOLDER [STEPS]`. For files of chats, no program is
 * needed: `orchard train --model FOLDER --lora 8 --data chats.jsonl`.
 */
import { crossEntropy, manualSeed, nn, optim, tensor, text } from "../src/index.ts";

const facts = { "Who are you?": "A small model.", "Where do you live?": "In a file.", "What is 2 + 2?": "4, I think." };
const [path = "model", steps = "60"] = process.argv.slice(2);
const [tokenizer, { model, generation, chatTemplate = "" }] = [text.loadTokenizer(path), await nn.loadModel(path)];
const template = new text.ChatTemplate(chatTemplate, tokenizer.templateTokens);
const encode = (messages: text.ChatMessage[], addGenerationPrompt: boolean): number[] =>
  tokenizer.encode(template.render(messages, { addGenerationPrompt }), { addSpecialTokens: false });

manualSeed(1); // each run learns the same weights
const adapter = nn.lora(model, { rank: 8, targets: ["query", "value", "output", "up", "down"] });
const optimizer = new optim.AdamW(adapter.parameters(), { lr: 1e-2 });
const examples = Object.entries(facts).map(([content, answer]) => {
  const asked = encode([{ role: "user", content }], true);
  const whole = encode(
    [
      { role: "user", content },
      { role: "assistant", content: answer },
    ],
    false,
  );
  const targets = whole.map((token, at) => (at < asked.length ? -100 : token)); // trains on the answers only
  const rows = [whole.slice(0, -1), targets.slice(1)].map((row) => tensor([row], { dtype: "int32" }));
  return { asked, x: rows[0], y: rows[1] };
});

model.train();
for (let step = 0; step < Number(steps); step++) {
  optimizer.zeroGrad();
  let sum = 0;
  for (const { x, y } of examples) {
    const loss = crossEntropy(model.forward(x), y, { dim: -1 });
    loss.backward();
    sum += Number(loss.item());
  }
  optimizer.step();
  if (step % 10 === 9) console.log(`step ${step + 1}: loss ${(sum / examples.length).toFixed(3)}`);
}
await nn.saveLora(adapter, `${path}/adapter`); // for `orchard chat FOLDER --adapter FOLDER/adapter`, and PEFT

for (const [at, question] of Object.keys(facts).entries()) {
  const { stopTokens } = generation;
  const options = { temperature: 0, maxTokens: 20, stopTokens };
  const answer = await Array.fromAsync(nn.generateText(model, tokenizer, examples[at].asked, options));
  console.log(`${question} ${answer.join("")}`);
}
