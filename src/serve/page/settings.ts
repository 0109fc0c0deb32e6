/** The fields of the system prompt and of sampling. */
import type { Message, Settings } from "./store.ts";

type Field = HTMLInputElement | HTMLTextAreaElement;

const form = document.getElementById("settings-form") as HTMLFormElement;
const fields = (): Field[] => [...form.querySelectorAll<Field>("[name]")];

export const currentSettings = (): Settings => Object.fromEntries(fields().map(({ name, value }) => [name, value]));

export function showSettings(settings: Settings): void {
  for (const field of fields()) field.value = settings[field.name] ?? "";
}

export function onSettings(listener: () => void): void {
  form.addEventListener("input", listener);
  form.addEventListener("submit", (event) => event.preventDefault());
}

/** Returns the numeric fields by their API names. Empty fields use the server's defaults. */
export function samplingOf(settings: Settings): Readonly<Record<string, number>> {
  const numbers = fields().filter(({ type, name }) => type === "number" && settings[name]?.trim());
  return Object.fromEntries(numbers.map(({ name }) => [name, Number(settings[name])]));
}

/** Returns the messages, preceded by the system prompt if there is one. */
export const withSystem = ({ system = "" }: Settings, messages: readonly Message[]): readonly Message[] =>
  system.trim() === "" ? messages : [{ role: "system", content: system }, ...messages];
