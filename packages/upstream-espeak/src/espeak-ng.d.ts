/** Types of the used part of Emscripten's modules, because the package has none. */
declare module "espeak-ng" {
  export interface Device {
    readonly open: () => void
    readonly close: () => void
    /** Writes bytes of a buffer. Returns how many. */
    readonly write: (stream: unknown, buffer: Int8Array, offset: number, length: number) => number
  }

  export interface Module {
    readonly FS: {
      readonly writeFile: (path: string, text: string) => void
      readonly makedev: (major: number, minor: number) => number
      readonly registerDevice: (id: number, device: Device) => void
      readonly mkdev: (path: string, id: number) => void
    }
  }

  /** Runs the command in its own memory. Settles when it has ended, successfully or not. */
  export default function espeak(options: {
    readonly arguments: ReadonlyArray<string>
    readonly preRun: ReadonlyArray<(module: Module) => void>
    readonly instantiateWasm: (imports: object, done: (instance: object) => void) => object
    readonly print: (line: string) => void
    readonly printErr: (line: string) => void
    readonly quit: (status: number, cause: unknown) => void
  }): Promise<Module>
}
