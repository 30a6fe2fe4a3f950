/** A worker's script that does as it is told: answers, dies, hangs, or answers something else. */
import { BroadcastChannel, parentPort } from "node:worker_threads"

export type Order = "throw" | "exit" | "loop" | "babble" | "environment" | { readonly echo: string }

let answered = 0

parentPort?.on("message", (order: Order) => {
  if (order === "throw") throw new Error("unreachable")
  if (order === "exit") process.exit(3)
  if (order === "babble") return parentPort?.postMessage({ echo: 7 })
  if (order === "loop") {
    new BroadcastChannel("loops").postMessage("looping")
    for (;;);
  }
  answered += 1
  if (order === "environment") return parentPort?.postMessage({ echo: Object.keys(process.env).join(), answered })
  parentPort?.postMessage({ echo: order.echo, answered })
})

parentPort?.postMessage("ready")
