/** The same call as text to copy: for a shell, for TypeScript and for Python. None of them contains the key. */

export interface Call {
  readonly method: string
  /** From the root of the server, with its query. */
  readonly path: string
  readonly body: unknown
  /** Seconds that the call waits for the end of a job. */
  readonly wait?: number
  /** The answer is a file, which is saved under this name. */
  readonly saveAs?: string
}

/** The variable of the environment from which the samples take the key. */
export const KEY = "MILLRACE_KEY"

/** In single quotes for a POSIX shell. */
const shell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

export const curl = (origin: string, { body, method, path, saveAs, wait }: Call): string =>
  [
    `curl ${saveAs === undefined ? "-sS" : `-sSf -o ${saveAs}`} ${method === "GET" ? "" : `-X ${method} `}${shell(origin + path)}`,
    `-H "Authorization: Bearer $${KEY}"`,
    ...(wait === undefined ? [] : [`-H 'Prefer: wait=${wait}'`]),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${shell(JSON.stringify(body))}`])
  ].join(" \\\n  ")

export const typescript = (origin: string, { body, method, path, saveAs, wait }: Call): string => {
  const headers = [
    `    Authorization: \`Bearer \${process.env.${KEY}}\``,
    ...(wait === undefined ? [] : [`    Prefer: "wait=${wait}"`]),
    ...(body === undefined ? [] : [`    "Content-Type": "application/json"`])
  ]
  const lines = [
    ...(method === "GET" ? [] : [`  method: ${JSON.stringify(method)}`]),
    `  headers: {\n${headers.join(",\n")}\n  }`,
    ...(body === undefined ? [] : [`  body: JSON.stringify(${indented(JSON.stringify(body, null, 2), "  ")})`])
  ]
  return `${saveAs === undefined ? "" : 'import { writeFile } from "node:fs/promises"\n\n'}const response = await fetch(${JSON.stringify(origin + path)}, {
${lines.join(",\n")}
})
${saveAs === undefined ? SHOW : saving(saveAs)}`
}

const SHOW = `const { data, error } = await response.json()
if (error) throw new Error(\`\${error.code}: \${error.message}\`)
console.log(data, response.headers.get("X-Credits-Charged"))
`

const saving = (name: string): string => `if (!response.ok) throw new Error(await response.text())
await writeFile(${JSON.stringify(name)}, new Uint8Array(await response.arrayBuffer()))
console.log(${JSON.stringify(name)}, response.headers.get("X-Credits-Charged"))
`

export const python = (origin: string, { body, method, path, saveAs, wait }: Call): string => {
  const headers = [
    `        "Authorization": "Bearer " + os.environ["${KEY}"],`,
    ...(wait === undefined ? [] : [`        "Prefer": "wait=${wait}",`]),
    ...(body === undefined ? [] : [`        "Content-Type": "application/json",`])
  ]
  return `import json, os, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(origin + path)},
    method=${JSON.stringify(method)},
    headers={
${headers.join("\n")}
    },${body === undefined ? "" : `\n    data=json.dumps(${indented(literal(body), "    ")}).encode(),`}
)
with urllib.request.urlopen(request) as response:
    ${saveAs === undefined ? 'print(json.load(response)["data"]' : `open(${JSON.stringify(saveAs)}, "wb").write(response.read())\n    print(${JSON.stringify(saveAs)}`}, response.headers["X-Credits-Charged"])
`
}

const indented = (text: string, by: string): string => text.replaceAll("\n", `\n${by}`)

/** A JSON value as Python writes it. */
const literal = (value: unknown, depth = 0): string => {
  const inner = "    ".repeat(depth + 1)
  const outer = "    ".repeat(depth)
  if (value === null) return "None"
  if (typeof value === "boolean") return value ? "True" : "False"
  if (Array.isArray(value))
    return value.length === 0 ? "[]" : `[\n${value.map((item) => `${inner}${literal(item, depth + 1)},`).join("\n")}\n${outer}]`
  if (typeof value === "object") {
    const entries = Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${literal(item, depth + 1)},`)
    return entries.length === 0 ? "{}" : `{\n${entries.join("\n")}\n${outer}}`
  }
  return JSON.stringify(value)
}
