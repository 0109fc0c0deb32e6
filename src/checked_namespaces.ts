/**
 * Methods of public classes in namespaces reject surplus arguments. The package has no copy of this module: it loads
 * namespaces on first use, and adds the check then (scripts/release/bundle.ts).
 */
import { refuseSurplus } from "./core/surplus.ts";
import * as data from "./data/index.ts";
import * as diffusion from "./diffusion/index.ts";
import * as distributed from "./distributed/index.ts";
import * as distributions from "./distributions/index.ts";
import * as io from "./io/index.ts";
import * as nn from "./nn/index.ts";
import * as optim from "./optim/index.ts";
import * as text from "./text/index.ts";

refuseSurplus(
  [data, diffusion, distributed, distributions, io, nn, optim, text].flatMap((namespace) =>
    Object.values<unknown>(namespace),
  ),
);
