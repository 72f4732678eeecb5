// Bento with only the components that bento.yaml uses, which builds in a fraction of the time that all of it takes. The
// command line is Bento's own.
package main

import (
	"context"

	_ "github.com/warpstreamlabs/bento/public/components/confluent"
	_ "github.com/warpstreamlabs/bento/public/components/io"
	_ "github.com/warpstreamlabs/bento/public/components/kafka"
	_ "github.com/warpstreamlabs/bento/public/components/pure"
	"github.com/warpstreamlabs/bento/public/service"
)

func main() {
	service.RunCLI(context.Background())
}
