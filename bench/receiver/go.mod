module postrider/bench/receiver

go 1.21
