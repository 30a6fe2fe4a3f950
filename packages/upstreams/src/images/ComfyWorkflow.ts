/** What ComfyUI is told to do: a graph of nodes, in its API format. These are the plainest that draw with a Stable Diffusion checkpoint. */
import type { Image } from "@millrace/core"

export interface Node {
  readonly class_type: string
  /** Values, and outputs of other nodes as `[node, number of the output]`. */
  readonly inputs: Readonly<Record<string, unknown>>
}

export type Workflow = Readonly<Record<string, Node>>

/** What shall be drawn. */
export interface Scene extends Image.Size {
  readonly prompt: string
  readonly samples: number
  readonly seed: number
  /** The picture to begin with, as `LoadImage` takes it, of the scene's size. */
  readonly image: string | undefined
  readonly strength: number
}

export interface Settings {
  /** Name of the checkpoint's file, such as `sd_xl_base_1.0.safetensors`. */
  readonly checkpoint: string
  /** 25 by default. */
  readonly steps?: number
  /** 7 by default. */
  readonly cfg?: number
  /** `euler` by default. */
  readonly sampler?: string
  /** `normal` by default. */
  readonly scheduler?: string
  /** What shall not be seen; nothing by default. */
  readonly negativePrompt?: string
}

/** Pictures go to a preview, whose folder is emptied when ComfyUI starts: they are not kept there. */
export const standard =
  ({ checkpoint, steps = 25, cfg = 7, sampler = "euler", scheduler = "normal", negativePrompt = "" }: Settings) =>
  ({ prompt, samples, seed, image, strength, width, height }: Scene): Workflow => ({
    checkpoint: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: checkpoint } },
    positive: { class_type: "CLIPTextEncode", inputs: { clip: ["checkpoint", 1], text: prompt } },
    negative: { class_type: "CLIPTextEncode", inputs: { clip: ["checkpoint", 1], text: negativePrompt } },
    ...(image === undefined
      ? { latent: { class_type: "EmptyLatentImage", inputs: { width, height, batch_size: samples } } }
      : {
          image: { class_type: "LoadImage", inputs: { image } },
          latent: { class_type: "VAEEncode", inputs: { pixels: ["image", 0], vae: ["checkpoint", 2] } }
        }),
    sampler: {
      class_type: "KSampler",
      inputs: {
        model: ["checkpoint", 0],
        positive: ["positive", 0],
        negative: ["negative", 0],
        latent_image: ["latent", 0],
        seed,
        steps,
        cfg,
        sampler_name: sampler,
        scheduler,
        denoise: image === undefined ? 1 : strength
      }
    },
    decoded: { class_type: "VAEDecode", inputs: { samples: ["sampler", 0], vae: ["checkpoint", 2] } },
    preview: { class_type: "PreviewImage", inputs: { images: ["decoded", 0] } }
  })
