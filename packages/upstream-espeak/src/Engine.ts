/** espeak-ng in WebAssembly. Its command runs once for each text, in its own memory. */
/// <reference path="./espeak-ng.d.ts" />
import { readFile } from "node:fs/promises"
import espeak from "espeak-ng"

/** The sample rate of every voice, in hertz. */
export const SAMPLE_RATE = 22_050

/** The used part of the WebAssembly API, for which TypeScript's ECMAScript library has no types. */
declare const WebAssembly: {
  readonly compile: (bytes: Uint8Array) => Promise<object>
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}

const compiled = await WebAssembly.compile(await readFile(new URL("espeak-ng.wasm", import.meta.resolve("espeak-ng"))))

/** The command's own files. */
const TEXT = "/text"
const SOUND = "/dev/sound"

/** Runs the command with a text and an audio device. Passes its output on line by line. Fails if the command fails. */
export const run = async (options: {
  readonly arguments: ReadonlyArray<string>
  readonly text: string
  readonly write: (bytes: Uint8Array) => void
  readonly print: (line: string) => void
}): Promise<void> => {
  let end: { readonly status: number; readonly cause: unknown } | undefined
  await espeak({
    arguments: options.arguments,
    preRun: [
      ({ FS }) => {
        FS.writeFile(TEXT, options.text)
        const device = FS.makedev(64, 0)
        FS.registerDevice(device, {
          open: () => undefined,
          close: () => undefined,
          write: (_, buffer, offset, length) => {
            options.write(new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length))
            return length
          }
        })
        FS.mkdev(SOUND, device)
      }
    ],
    instantiateWasm: (imports, done) => {
      const instance = new WebAssembly.Instance(compiled, imports)
      done(instance)
      return instance.exports
    },
    print: options.print,
    printErr: () => undefined,
    quit: (status, cause) => {
      end ??= { status, cause }
    }
  })
  if (end === undefined || end.status !== 0) throw new Error(`espeak-ng ended with status ${end?.status}`, { cause: end?.cause })
}

class TooLong extends Error {}

/** Samples of a block: about a second and a half. */
const BLOCK = 32_768

/** Bytes of the WAV header that espeak-ng writes: RIFF, format, and the beginning of the data. */
const HEADER_BYTES = 44

/**
 * Speaks a text and passes its samples on in blocks, as numbers from -1 to 1. The array of a block is reused for the next. Stops after
 * `sampleLimit` samples and then returns false.
 */
export const speak = async (options: {
  /** The voice's file, for the option `-v`. */
  readonly voice: string
  readonly text: string
  readonly sampleLimit: number
  readonly onSamples: (samples: Float32Array) => void
}): Promise<boolean> => {
  const bytes = new Uint8Array(BLOCK * Int16Array.BYTES_PER_ELEMENT)
  const view = new DataView(bytes.buffer)
  const samples = new Float32Array(BLOCK)
  let filled = 0
  let header = true
  let given = 0

  const give = () => {
    const count = filled / Int16Array.BYTES_PER_ELEMENT
    given += count
    if (given > options.sampleLimit) throw new TooLong()
    for (let i = 0; i < count; i++) samples[i] = view.getInt16(i * Int16Array.BYTES_PER_ELEMENT, true) / 32_768
    filled = 0
    options.onSamples(samples.subarray(0, count))
  }

  /** The file begins with a header, then has samples to its end. espeak-ng does not seek back in a device. */
  const write = (written: Uint8Array) => {
    for (let taken = 0; taken < written.length; ) {
      const piece = written.subarray(taken, taken + (header ? HEADER_BYTES : bytes.length) - filled)
      bytes.set(piece, filled)
      filled += piece.length
      taken += piece.length
      if (header && filled === HEADER_BYTES) {
        if (view.getUint32(24, true) !== SAMPLE_RATE) throw new Error("espeak-ng speaks at another rate")
        header = false
        filled = 0
      } else if (filled === bytes.length) give()
    }
  }

  try {
    // -b 1: UTF-8
    await run({ arguments: ["-v", options.voice, "-b", "1", "-w", SOUND, "-f", TEXT], text: options.text, write, print: () => undefined })
    if (!header) give()
    return true
  } catch (error) {
    if (error instanceof TooLong || (error instanceof Error && error.cause instanceof TooLong)) return false
    throw error
  }
}
