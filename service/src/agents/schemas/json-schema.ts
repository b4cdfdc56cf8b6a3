/** A Zod schema as one self-contained JSON Schema 2020-12: named parts stand where they are used, because many clients follow no `$ref`. */
import { z } from 'zod'

export type JsonSchema = Readonly<Record<string, unknown>>

/** `io` tells a value as it is sent (`input`: what has a default may be left out) from one as it is answered (`output`). */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  return z.toJSONSchema(schema, { io, metadata: unnamed })
}

/** What is said of a schema, without the `id` that would make it a definition of its own. */
const unnamed = z.registry<Record<string, unknown>>()
unnamed.get = (schema) => {
  const { id: _id, ...rest } = z.globalRegistry.get(schema) ?? {}
  return rest as never
}
