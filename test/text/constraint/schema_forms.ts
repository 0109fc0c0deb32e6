/** Runs schemas as automata over the bytes of texts, in this process and so without messages to another one. */
import { type CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo } from "@mlc-ai/web-xgrammar";
import { byteCharacters } from "../../../src/data/bpe_words.ts";
import { schemaRules } from "../../../src/text/constraint/schema_rules.ts";

const END = 256;
const tokens = [...Array.from({ length: END }, (_, byte) => byteCharacters[byte]), ""];
const info = await TokenizerInfo.createTokenizerInfo(tokens, "byte_level", false, END + 1, [END]);
const compiler = await GrammarCompiler.createGrammarCompiler(info, false);

const has = (mask: Int32Array, token: number): boolean => ((mask[token >> 5] >>> (token & 31)) & 1) === 1;

export class SchemaForm implements Disposable {
  private constructor(private readonly compiled: CompiledGrammar) {}

  /** @throws {ArgumentError} for a schema that can't be enforced. */
  static async of(schema: object): Promise<SchemaForm> {
    const grammar = await Grammar.fromEBNF(schemaRules(JSON.stringify(schema)));
    try {
      return new SchemaForm(await compiler.compileGrammar(grammar));
    } finally {
      grammar.dispose();
    }
  }

  /** Whether a text is complete. */
  async accepts(text: string): Promise<boolean> {
    return this.matching(
      async (matcher) => matcher._acceptString(text) && has(await matcher.getNextTokenBitmask(), END),
    );
  }

  /** A text, drawn from numbers from 0 to 1; undefined if it does not end within this many bytes. */
  async drawn(random: () => number, most = 120): Promise<string | undefined> {
    return this.matching(async (matcher) => {
      const bytes: number[] = [];
      while (bytes.length <= most) {
        const mask = await matcher.getNextTokenBitmask();
        const next = Array.from({ length: END + 1 }, (_, token) => token).filter((token) => has(mask, token));
        // Drawn texts are short, and mostly ASCII.
        const few = next.filter((token) => token < 128 && token > 32);
        const from = random() < 0.8 && few.length > 0 ? few : next;
        const token = has(mask, END) && random() < 0.5 ? END : from[Math.floor(random() * from.length)];
        if (token === END)
          return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
        bytes.push(token);
        matcher.acceptToken(token);
      }
      return undefined;
    });
  }

  private async matching<T>(body: (matcher: GrammarMatcher) => Promise<T>): Promise<T> {
    const matcher = await GrammarMatcher.createGrammarMatcher(this.compiled);
    try {
      return await body(matcher);
    } finally {
      matcher.dispose();
    }
  }

  [Symbol.dispose](): void {
    this.compiled.dispose();
  }
}
