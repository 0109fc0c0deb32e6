/** Shows the progress of a download on standard error. */
import { fittedLine, lineColumns } from "../../core/fitted_line.ts";
import { formatBytes, formatDuration } from "../../core/format.ts";
import type { PullProgress } from "./pull.ts";

const MILLISECONDS_BETWEEN_LINES = 200;

/** A line that follows a download. */
export interface DownloadLine {
  show(progress: PullProgress): void;
  /** Ends the line, so that the next output begins another. */
  end(): void;
}

/**
 * Returns a line that is updated in place on a terminal. Elsewhere, `"files"` prints a line per file, and `"none"`
 * nothing.
 */
export function downloadLine(elsewhere: "files" | "none"): DownloadLine {
  const isTerminal = process.stderr.isTTY === true;
  const start = { time: performance.now(), bytes: -1 };
  let [file, time, isShown] = [-1, 0, false];
  return {
    show(progress) {
      const { fileIndex, bytes, totalBytes } = progress;
      if (start.bytes < 0) start.bytes = bytes;
      const now = performance.now();
      const isNew = fileIndex !== file;
      file = fileIndex;
      if (!isTerminal) {
        if (isNew && elsewhere === "files") console.error(nameOf(progress));
        return;
      }
      if (!isNew && now - time < MILLISECONDS_BETWEEN_LINES && bytes < totalBytes) return;
      [time, isShown] = [now, true];
      process.stderr.write(`\r\u001b[K${lineOf(progress, (bytes - start.bytes) / ((now - start.time) / 1000))}`);
    },
    end() {
      if (isShown) process.stderr.write("\n");
    },
  };
}

const nameOf = ({ file, fileIndex, fileCount, bytes, totalBytes }: PullProgress): string =>
  `${fileIndex + 1} of ${fileCount}: ${file}, ${formatBytes(bytes)} of ${formatBytes(totalBytes)}`;

/** @param speed bytes per second since the first call */
function lineOf({ file, fileIndex, fileCount, bytes, totalBytes }: PullProgress, speed: number): string {
  const left = speed > 0 ? `${formatDuration((totalBytes - bytes) / speed)} left` : "";
  const percent = totalBytes === 0 ? 100 : Math.floor((100 * bytes) / totalBytes);
  return fittedLine(lineColumns(), percent, 100, [
    { importance: 6, text: `${formatBytes(bytes)} of ${formatBytes(totalBytes)}` },
    { importance: 5, text: left },
    { importance: 3, text: `${formatBytes(Math.max(0, speed))}/s` },
    { importance: 2, text: `${fileIndex + 1} of ${fileCount}: ${file}` },
  ]);
}
