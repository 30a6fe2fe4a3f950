/** The package has no types of its own: of what Emscripten's modules take and give, what is used here. */
declare module "espeak-ng" {
  export interface Device {
    readonly open: () => void
    readonly close: () => void
    /** Takes bytes of a buffer, and gives back how many were taken. */
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

  /** Runs the command in a memory of its own; settles once it ended, however it did. */
  export default function espeak(options: {
    readonly arguments: ReadonlyArray<string>
    readonly preRun: ReadonlyArray<(module: Module) => void>
    readonly instantiateWasm: (imports: object, done: (instance: object) => void) => object
    readonly print: (line: string) => void
    readonly printErr: (line: string) => void
    readonly quit: (status: number, cause: unknown) => void
  }): Promise<Module>
}
