/** Workflows of ComfyUI: graphs of nodes in its API format. The standard ones are the simplest for a Stable Diffusion checkpoint. */
import type { Image } from "@millrace/core"

export interface Node {
  readonly class_type: string
  /** Values, or outputs of other nodes as `[node, number of the output]`. */
  readonly inputs: Readonly<Record<string, unknown>>
}

export type Workflow = Readonly<Record<string, Node>>

/** The image to draw. */
export interface Scene extends Image.Size {
  readonly prompt: string
  readonly samples: number
  readonly seed: number
  /** The image to edit, by its name for `LoadImage`. It has the scene's size. */
  readonly image: string | undefined
  readonly strength: number
}

export interface Settings {
  /** The checkpoint's file name, such as `sd_xl_base_1.0.safetensors`. */
  readonly checkpoint: string
  /** 25 by default. */
  readonly steps?: number
  /** 7 by default. */
  readonly cfg?: number
  /** `euler` by default. */
  readonly sampler?: string
  /** `normal` by default. */
  readonly scheduler?: string
  /** The negative prompt; empty by default. */
  readonly negativePrompt?: string
}

/** Images are saved as previews, because ComfyUI empties that folder when it starts. */
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
