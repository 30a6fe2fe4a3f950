/** Loaded into a server before it starts: at SIGUSR2 it collects garbage and prints on stderr what is left, in bytes. */
process.on("SIGUSR2", () => {
  for (let i = 0; i < 3; i++) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  process.stderr.write(`${JSON.stringify({ heapUsed, external })}\n`)
})
