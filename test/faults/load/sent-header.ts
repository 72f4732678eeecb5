/** Epoch ms at which the request was written, by its sender, whatever faults its clock has. */
export const sentHeader = 'x-faults-sent-at'
