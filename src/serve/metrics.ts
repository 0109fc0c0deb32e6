/** The server's metrics for Prometheus. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Batcher } from "../nn/generation/batcher.ts";
import type { Usage } from "./work.ts";

const SECONDS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300];

export class Metrics {
  private readonly registry = new Registry();
  private readonly requests = this.counter("requests_total", "Requests by path and status", ["path", "status"]);
  private readonly promptTokens = this.counter("prompt_tokens_total", "Tokens of prompts");
  private readonly cachedTokens = this.counter(
    "prompt_tokens_cached_total",
    "Tokens of prompts that were read from a cache",
  );
  private readonly generatedTokens = this.counter("generated_tokens_total", "Tokens that were generated");
  private readonly outcomes = this.counter("texts_total", "Generated texts by how they ended", ["outcome"]);
  private readonly seconds = new Histogram({
    name: "orchard_request_seconds",
    help: "From a request to the end of its answer",
    buckets: SECONDS,
    registers: [this.registry],
  });

  /** @param batcher undefined for an encoder, which generates no texts */
  constructor(batcher: Batcher | undefined, inFlight: () => number) {
    this.gauge("texts_active", "Texts being generated", () => batcher?.active ?? 0);
    this.gauge("texts_waiting", "Texts waiting for a slot", () => batcher?.waiting ?? 0);
    this.gauge("requests_in_flight", "Requests being answered", inFlight);
  }

  /** Counts requests when their answers start. */
  answered(path: string, status: number, count = 1): void {
    this.requests.inc({ path, status: String(status) }, count);
  }

  /** Counts the texts of a request when it ends. */
  ended(outcome: string, usage: Usage, seconds: number): void {
    this.outcomes.inc({ outcome });
    this.promptTokens.inc(usage.prompt_tokens);
    this.cachedTokens.inc(usage.prompt_tokens_details.cached_tokens);
    this.generatedTokens.inc(usage.completion_tokens);
    this.seconds.observe(seconds);
  }

  async answer(): Promise<Response> {
    return new Response(await this.registry.metrics(), { headers: { "Content-Type": this.registry.contentType } });
  }

  private counter<L extends string = never>(name: string, help: string, labelNames: L[] = []): Counter<L> {
    return new Counter({ name: `orchard_${name}`, help, labelNames, registers: [this.registry] });
  }

  private gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name: `orchard_${name}`,
      help,
      registers: [this.registry],
      collect() {
        this.set(value());
      },
    });
  }
}
