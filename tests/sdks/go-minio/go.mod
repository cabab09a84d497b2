module slipway.test/sdks/minio

go 1.24

require github.com/minio/minio-go/v7 v7.4.1
