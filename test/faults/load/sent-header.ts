/** `<epoch ms>/<process id>`: when the request was written, by its sender, whatever faults its clock has, and by whom. */
export const sentHeader = 'x-faults-sent-at'
