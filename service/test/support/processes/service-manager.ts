/** A service manager for tests: the socket that systemd gives to a unit with Type=notify, held by Python. */
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { testFolder } from '../folder.ts'
import { until } from '../wait.ts'

const has = (program: string) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
export const noServiceManager = has('systemd-notify') && has('python3') ? false : 'no systemd-notify or no python3'

const program = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('bound', flush=True)
while True:
    print(receiver.recv(4096).decode().strip().replace('\\n', ' '), flush=True)
`

export async function startServiceManager() {
  const folder = testFolder()
  const socket = join(folder, 'notify')
  const receiver = spawn('python3', ['-c', program, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  receiver.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  await until(() => printed.startsWith('bound\n'))
  return {
    socket,
    /** Reports in the order of their arrival. Those that only order the others are left out. */
    reports: () =>
      printed
        .split('\n')
        .slice(1, -1)
        .filter((line) => line !== '' && !line.startsWith('BARRIER=')),
    async [Symbol.asyncDispose]() {
      receiver.kill('SIGKILL')
    },
  }
}
