/** Clients that ask several processes in turn, as behind a balancer, and remember every answer that is none. */
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export type Answered = { readonly status: number; readonly body: string }
export type Target = { readonly verification: number; readonly graphql: number }
type Host = keyof Target
type Ask = {
  readonly path: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

export type SteadyLoad = ReturnType<typeof createSteadyLoad>

/** A process that refuses connections is left out from then on; whatever else goes wrong is a failure. */
export function createSteadyLoad() {
  const targets: Target[] = []
  const failures: string[] = []
  const answered = new Map<string, number>()
  const agent = new Agent({ keepAlive: true })
  const clients: Promise<void>[] = []
  let running = true
  let turn = 0

  /** Asked of one of the processes; `not` is one that should not be asked, as long as there is another. */
  async function ask(kind: string, host: Host, what: Ask, not?: Target): Promise<Answered & { by: Target }> {
    for (;;) {
      const others = targets.filter((target) => target !== not)
      const by = others[(turn += 1) % others.length] ?? not
      if (by === undefined) throw new Error('No target is left.')
      try {
        const answer = await send(by[host], what, agent)
        if (answer.status !== 200) failures.push(`${kind}: ${answer.status} ${answer.body.slice(0, 200)}`)
        const name = `${kind} ${by.verification}`
        answered.set(name, (answered.get(name) ?? 0) + 1)
        return { ...answer, by }
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code !== 'ECONNREFUSED') failures.push(`${kind}: ${code ?? String(error)}`)
        if (targets.includes(by)) targets.splice(targets.indexOf(by), 1)
      }
    }
  }

  return {
    targets,
    failures,
    ask,
    /** How often this process has answered this kind. */
    count: (kind: string, { verification }: Target) => answered.get(`${kind} ${verification}`) ?? 0,
    /** Does `once` again and again until the end. */
    client(once: () => Promise<void>): void {
      const work = async () => {
        for (; running; await delay(10)) await once()
      }
      clients.push(work().catch((error: unknown) => void failures.push(String(error))))
    },
    async end() {
      running = false
      await Promise.all(clients)
      agent.destroy()
    },
  }
}

function send(port: number, { path, method = 'GET', headers = {}, body }: Ask, agent: Agent): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1', path, method, headers, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
      response.on('error', reject)
    })
    outgoing.setTimeout(120_000, () => outgoing.destroy(new Error('no answer in two minutes')))
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
